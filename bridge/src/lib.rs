// The C ABI of include/quern_bridge.h. Every entry catches panics; pointers are checked only for null.

mod chat;
mod chat_template;
mod decoding;
mod environment;
mod error;
mod json_text;
mod pre_tokenizer;
mod python;
mod source;
mod strftime;
mod tokenizer;
mod vocabulary;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::slice;

use chat::Chat;
use chat_template::ChatTemplate;
use error::{Error, Result};
use tokenizer::Tokenizer;
use vocabulary::{Kind, TokenType, Vocabulary};

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Bytes {
    data: *const u8,
    size: usize,
}

impl Bytes {
    fn of(bytes: &[u8]) -> Self {
        Self { data: bytes.as_ptr(), size: bytes.len() }
    }

    /// # Safety
    /// `data` is null or points to `size` bytes that stay as they are for `'a`.
    unsafe fn get<'a>(self) -> &'a [u8] {
        if self.data.is_null() { &[] } else { unsafe { slice::from_raw_parts(self.data, self.size) } }
    }

    /// # Safety
    /// As `get`.
    unsafe fn text<'a>(self) -> Result<&'a str> {
        std::str::from_utf8(unsafe { self.get() })
            .map_err(|error| Error::Invalid(format!("text that isn't UTF-8 at byte {}", error.valid_up_to())))
    }
}

/// A vector handed over to the caller, and given back to be freed.
#[repr(C)]
pub struct Owned<T> {
    data: *mut T,
    size: usize,
    capacity: usize,
}

impl<T> Owned<T> {
    fn new(vector: Vec<T>) -> Self {
        let mut vector = std::mem::ManuallyDrop::new(vector);
        Self { data: vector.as_mut_ptr(), size: vector.len(), capacity: vector.capacity() }
    }

    /// # Safety
    /// Made by `new` and not freed yet, or all zero.
    unsafe fn free(self) {
        if !self.data.is_null() {
            drop(unsafe { Vec::from_raw_parts(self.data, self.size, self.capacity) });
        }
    }
}

#[repr(C)]
#[derive(Debug, PartialEq, Eq)]
pub enum Status {
    Ok = 0,
    Invalid = 1,
    Unsupported = 2,
    Internal = 3,
}

/// Runs `body`; its error, or the news of a panic, goes to `error`.
///
/// # Safety
/// `error` is null or may be written.
unsafe fn guard(error: *mut Owned<u8>, body: impl FnOnce() -> Result<()>) -> Status {
    let (status, message) = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => return Status::Ok,
        Ok(Err(Error::Invalid(message))) => (Status::Invalid, message),
        Ok(Err(Error::Unsupported(message))) => (Status::Unsupported, message),
        Err(_) => (Status::Internal, "a panic behind the bridge".to_string()),
    };
    if !error.is_null() {
        unsafe { error.write(Owned::new(message.into_bytes())) };
    }
    status
}

/// The same for look-ups, which have nothing to say but that they failed.
fn guard_value<T>(absent: T, body: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or(absent)
}

fn ids_of(ids: Vec<u32>) -> Owned<i32> {
    Owned::new(ids.into_iter().map(|id| id as i32).collect())
}

/// # Safety
/// From the bridge, not freed yet.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quern_buffer_free(buffer: Owned<u8>) {
    unsafe { buffer.free() }
}

/// # Safety
/// From the bridge, not freed yet.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quern_ids_free(ids: Owned<i32>) {
    unsafe { ids.free() }
}

#[repr(C)]
pub struct RawVocabulary {
    kind: u32,
    tokens: *const Bytes,
    types: *const u8,
    scores: *const f32,
    token_count: usize,
    merges: *const Bytes,
    merge_count: usize,
    pre: Bytes,
    add_space_prefix: bool,
    remove_extra_spaces: bool,
    character_map: Bytes,
    unknown_id: i32,
}

impl RawVocabulary {
    /// # Safety
    /// The arrays are null or have as many elements as the counts say.
    unsafe fn read(&self) -> Result<Vocabulary<'_>> {
        unsafe fn array<'a, T>(data: *const T, count: usize) -> &'a [T] {
            if data.is_null() { &[] } else { unsafe { slice::from_raw_parts(data, count) } }
        }
        let texts = |data, count| unsafe { array::<Bytes>(data, count) }.iter().map(|bytes| unsafe { bytes.text() });
        Ok(Vocabulary {
            kind: match self.kind {
                0 => Kind::ByteLevelBpe,
                1 => Kind::SentencePieceBpe,
                2 => Kind::Unigram,
                3 => Kind::WordPiece,
                other => return Err(Error::Unsupported(format!("vocabulary kind {other}"))),
            },
            tokens: texts(self.tokens, self.token_count).collect::<Result<_>>()?,
            types: unsafe { array(self.types, self.token_count) }.iter().map(token_type).collect::<Result<_>>()?,
            scores: unsafe { array(self.scores, self.token_count) },
            merges: texts(self.merges, self.merge_count).collect::<Result<_>>()?,
            pre: unsafe { self.pre.text() }?,
            add_space_prefix: self.add_space_prefix,
            remove_extra_spaces: self.remove_extra_spaces,
            character_map: unsafe { self.character_map.get() },
            unknown_id: u32::try_from(self.unknown_id).ok(),
        })
    }
}

fn token_type(number: &u8) -> Result<TokenType> {
    Ok(match number {
        1 => TokenType::Normal,
        2 => TokenType::Unknown,
        3 => TokenType::Control,
        4 => TokenType::UserDefined,
        5 => TokenType::Unused,
        6 => TokenType::Byte,
        other => return Err(Error::Invalid(format!("token type {other}"))),
    })
}

/// # Safety
/// `json` can be read; `out` can be written; `error` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quern_tokenizer_from_json(
    json: Bytes,
    out: *mut *mut Tokenizer,
    error: *mut Owned<u8>,
) -> Status {
    unsafe {
        guard(error, || {
            let tokenizer = Tokenizer::from_json(json.get())?;
            out.write(Box::into_raw(Box::new(tokenizer)));
            Ok(())
        })
    }
}

/// # Safety
/// `vocabulary` and what it points to can be read; the rest as above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quern_tokenizer_from_vocabulary(
    vocabulary: *const RawVocabulary,
    out: *mut *mut Tokenizer,
    error: *mut Owned<u8>,
) -> Status {
    unsafe {
        guard(error, || {
            let tokenizer = (*vocabulary).read()?.build()?;
            out.write(Box::into_raw(Box::new(tokenizer)));
            Ok(())
        })
    }
}

/// # Safety
/// From the bridge, not freed yet; or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quern_tokenizer_free(tokenizer: *mut Tokenizer) {
    if !tokenizer.is_null() {
        guard_value((), || drop(unsafe { Box::from_raw(tokenizer) }));
    }
}

/// # Safety
/// `tokenizer` is alive, `text` can be read, the outputs can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quern_tokenizer_encode(
    tokenizer: *const Tokenizer,
    text: Bytes,
    plain: bool,
    out: *mut Owned<i32>,
    error: *mut Owned<u8>,
) -> Status {
    unsafe {
        guard(error, || {
            let ids = (*tokenizer).encode(text.text()?, plain, None)?;
            out.write(ids_of(ids));
            Ok(())
        })
    }
}

/// # Safety
/// `tokenizer` is alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quern_tokenizer_size(tokenizer: *const Tokenizer) -> i32 {
    unsafe { (*tokenizer).size() as i32 }
}

/// # Safety
/// `tokenizer` is alive, `text` can be read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quern_tokenizer_id(tokenizer: *const Tokenizer, text: Bytes) -> i32 {
    let find = || unsafe { text.text().ok().and_then(|text| (*tokenizer).id(text)) };
    guard_value(-1, || find().map_or(-1, |id| id as i32))
}

/// # Safety
/// `tokenizer` is alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quern_tokenizer_prefix_id(tokenizer: *const Tokenizer) -> i32 {
    unsafe { (*tokenizer).prefix_id().map_or(-1, |id| id as i32) }
}

#[repr(C)]
pub struct RawToken {
    text: Bytes,
    bytes: Bytes,
    first_bytes: Bytes,
    special: bool,
}

/// # Safety
/// `tokenizer` is alive, `out` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quern_tokenizer_token(tokenizer: *const Tokenizer, id: i32, out: *mut RawToken) -> bool {
    guard_value(false, || {
        let token = u32::try_from(id).ok().and_then(|id| unsafe { (*tokenizer).token(id) });
        let Some(token) = token else { return false };
        let raw = RawToken {
            text: Bytes::of(token.text),
            bytes: Bytes::of(token.bytes),
            first_bytes: Bytes::of(token.first_bytes),
            special: token.special,
        };
        unsafe { out.write(raw) };
        true
    })
}

/// # Safety
/// `source` can be read, the outputs can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quern_template_parse(
    source: Bytes,
    out: *mut *mut ChatTemplate,
    error: *mut Owned<u8>,
) -> Status {
    unsafe {
        guard(error, || {
            let template = ChatTemplate::parse(source.text()?)?;
            out.write(Box::into_raw(Box::new(template)));
            Ok(())
        })
    }
}

/// # Safety
/// From the bridge, not freed yet; or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quern_template_free(template: *mut ChatTemplate) {
    if !template.is_null() {
        guard_value((), || drop(unsafe { Box::from_raw(template) }));
    }
}

#[repr(C)]
pub struct RawChat {
    messages: Bytes,
    tools: Bytes,
    variables: Bytes,
    add_generation_prompt: bool,
    continue_final_message: bool,
    now_s: i64,
}

/// # Safety
/// `template`, `chat` and `tokenizer` (unless null) are alive; `text` and `error` can be written; `ids` too, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quern_template_render(
    template: *const ChatTemplate,
    chat: *const RawChat,
    tokenizer: *const Tokenizer,
    text: *mut Owned<u8>,
    ids: *mut Owned<i32>,
    error: *mut Owned<u8>,
) -> Status {
    unsafe {
        guard(error, || {
            let raw = &*chat;
            let chat = Chat {
                messages: raw.messages.get(),
                tools: raw.tools.get(),
                variables: raw.variables.get(),
                add_generation_prompt: raw.add_generation_prompt,
                continue_final_message: raw.continue_final_message,
                now_s: raw.now_s,
            };
            let prompt = chat::prompt(&*template, &chat, tokenizer.as_ref())?;
            text.write(Owned::new(prompt.text.into_bytes()));
            if !ids.is_null() {
                ids.write(ids_of(prompt.ids));
            }
            Ok(())
        })
    }
}
