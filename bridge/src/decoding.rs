// From a token's spelling to the bytes that it stands for, as the tokenizer's decoder undoes it.

use std::sync::LazyLock;

use serde_json::Value;
use tokenizers::decoders::wordpiece::cleanup;

use crate::error::{Error, Result};

/// One step of undoing, over the bytes of one token.
enum Step {
    /// Byte-level spelling: each character is a byte.
    ByteLevel,
    /// `<0xAB>` is that byte.
    ByteFallback,
    Replace {
        from: String,
        to: String,
    },
    /// At most `count` of `content` are dropped at the beginning of a text.
    StripFirst {
        content: char,
        count: usize,
    },
    /// The replacement character is a space; at the beginning of a text it's dropped where one is prepended.
    Metaspace {
        replacement: char,
        drop_first: bool,
    },
    /// A token without the prefix begins a word.
    WordPiece {
        prefix: String,
        cleanup: bool,
    },
    /// Tokens are words.
    Words,
}

pub struct Decoding {
    steps: Vec<Step>,
}

impl Decoding {
    pub fn byte_level() -> Self {
        Self { steps: vec![Step::ByteLevel] }
    }

    pub fn sentence_piece(strip_first: bool) -> Self {
        let mut steps = vec![Step::Replace { from: "\u{2581}".into(), to: " ".into() }, Step::ByteFallback];
        if strip_first {
            steps.push(Step::StripFirst { content: ' ', count: 1 });
        }
        Self { steps }
    }

    pub fn word_piece() -> Self {
        Self { steps: vec![Step::WordPiece { prefix: "##".into(), cleanup: true }] }
    }

    /// The `decoder` of tokenizer.json.
    pub fn from_json(decoder: &Value) -> Result<Self> {
        let mut steps = Vec::new();
        if decoder.is_null() {
            steps.push(Step::Words);
        } else {
            read_steps(decoder, &mut steps)?;
        }
        Ok(Self { steps })
    }

    /// What a token stands for; `first`: at the beginning of a text.
    pub fn bytes(&self, spelling: &str, first: bool) -> Vec<u8> {
        let mut bytes = spelling.as_bytes().to_vec();
        for step in &self.steps {
            if let Some(changed) = apply(step, &bytes, first) {
                bytes = changed;
            }
        }
        bytes
    }
}

fn read_steps(decoder: &Value, steps: &mut Vec<Step>) -> Result<()> {
    let text = |key: &str| decoder[key].as_str().unwrap_or_default().to_string();
    let character = |key: &str, absent: char| decoder[key].as_str().and_then(|s| s.chars().next()).unwrap_or(absent);
    match decoder["type"].as_str().unwrap_or_default() {
        "Sequence" => {
            for part in decoder["decoders"].as_array().into_iter().flatten() {
                read_steps(part, steps)?;
            }
        }
        "ByteLevel" => steps.push(Step::ByteLevel),
        "ByteFallback" => steps.push(Step::ByteFallback),
        "Fuse" => {}
        "Replace" => match decoder["pattern"]["String"].as_str() {
            Some(from) => steps.push(Step::Replace { from: from.into(), to: text("content") }),
            None => return Err(Error::Unsupported("a decoder that replaces by a regular expression".into())),
        },
        "Strip" => {
            if decoder["stop"].as_u64().unwrap_or(0) != 0 {
                return Err(Error::Unsupported("a decoder that strips a text's end".into()));
            }
            let count = decoder["start"].as_u64().unwrap_or(0) as usize;
            steps.push(Step::StripFirst { content: character("content", ' '), count });
        }
        "Metaspace" => steps.push(Step::Metaspace {
            replacement: character("replacement", '\u{2581}'),
            drop_first: decoder["prepend_scheme"].as_str() != Some("never"),
        }),
        "WordPiece" => {
            let cleanup = decoder["cleanup"].as_bool().unwrap_or(true);
            steps.push(Step::WordPiece { prefix: text("prefix"), cleanup });
        }
        other => return Err(Error::Unsupported(format!("the decoder '{other}'"))),
    }
    Ok(())
}

/// Nothing when the step leaves the bytes as they are.
fn apply(step: &Step, bytes: &[u8], first: bool) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(bytes).ok()?;
    match step {
        Step::ByteLevel => text.chars().map(|c| BYTE_OF_CHAR.get(c as usize).copied().flatten()).collect(),
        Step::ByteFallback => fallback_byte(text).map(|byte| vec![byte]),
        Step::Replace { from, to } if !from.is_empty() && text.contains(from) => {
            Some(text.replace(from, to).into_bytes())
        }
        Step::Replace { .. } => None,
        Step::StripFirst { content, count } if first => {
            let dropped: usize = text.chars().take(*count).take_while(|c| c == content).map(char::len_utf8).sum();
            Some(bytes[dropped..].to_vec())
        }
        Step::StripFirst { .. } => None,
        Step::Metaspace { replacement, drop_first } => {
            let space = if first && *drop_first { "" } else { " " };
            Some(text.replace(*replacement, space).into_bytes())
        }
        Step::WordPiece { prefix, cleanup: clean } => {
            let word = match text.strip_prefix(prefix.as_str()) {
                _ if first => text.to_string(),
                Some(rest) => rest.to_string(),
                None => format!(" {text}"),
            };
            Some(if *clean { cleanup(&word) } else { word }.into_bytes())
        }
        Step::Words if first => None,
        Step::Words => Some(format!(" {text}").into_bytes()),
    }
}

fn fallback_byte(text: &str) -> Option<u8> {
    let digits = text.strip_prefix("<0x")?.strip_suffix('>')?;
    (digits.len() == 2).then(|| u8::from_str_radix(digits, 16).ok()).flatten()
}

/// Byte-level BPE spells printable Latin-1 bytes as themselves, the others as the characters from U+0100 on.
static BYTE_OF_CHAR: LazyLock<Vec<Option<u8>>> = LazyLock::new(|| {
    let mut table = vec![None; 0x144];
    let mut next = 0x100;
    for byte in 0..=255u8 {
        let printable = matches!(byte, b'!'..=b'~' | 0xa1..=0xac | 0xae..=0xff);
        let spelled = if printable { byte as usize } else { next };
        next += usize::from(!printable);
        table[spelled] = Some(byte);
    }
    table
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn byte_level_undoes_every_byte() {
        let decoding = Decoding::byte_level();
        assert_eq!(decoding.bytes("\u{120}h\u{e9}", false), [b' ', b'h', 0xe9]);
        assert_eq!(decoding.bytes("\u{10a}", false), b"\n");
        assert_eq!(decoding.bytes("\u{7684}", false), "\u{7684}".as_bytes()); // an added token that isn't spelled so
        let mut seen: Vec<u8> = BYTE_OF_CHAR.iter().flatten().copied().collect();
        seen.sort_unstable();
        assert_eq!(seen, (0..=255).collect::<Vec<u8>>());
    }

    #[test]
    fn sentence_piece_drops_one_space_at_the_beginning() {
        let decoding = Decoding::sentence_piece(true);
        assert_eq!(decoding.bytes("\u{2581}\u{2581}a", true), b" a");
        assert_eq!(decoding.bytes("\u{2581}\u{2581}a", false), b"  a");
        assert_eq!(decoding.bytes("<0xE2>", false), [0xe2]);
        assert_eq!(decoding.bytes("<0xZZ>", false), b"<0xZZ>");
    }

    #[test]
    fn word_piece_joins_and_cleans() {
        let decoding = Decoding::word_piece();
        assert_eq!(decoding.bytes("##ing", false), b"ing");
        assert_eq!(decoding.bytes("word", false), b" word");
        assert_eq!(decoding.bytes("word", true), b"word");
        assert_eq!(decoding.bytes(".", false), b".");
    }

    #[test]
    fn an_unknown_decoder_is_named() {
        let error = Decoding::from_json(&serde_json::json!({"type": "CTC"})).err().unwrap();
        assert!(matches!(error, Error::Unsupported(ref message) if message.contains("CTC")));
    }
}
