// What can go wrong behind the ABI.

#[derive(Debug)]
pub enum Error {
    /// The input breaks its format, or a template refused it.
    Invalid(String),
    /// Well-formed, but of a kind that isn't known.
    Unsupported(String),
}

impl Error {
    pub fn invalid(reason: impl std::fmt::Display) -> Self {
        Self::Invalid(reason.to_string())
    }
}

pub type Result<T> = std::result::Result<T, Error>;
