// A tokenizer of the `tokenizers` crate, with a table of what each token stands for.

use std::collections::HashMap;
use std::ops::Range;

use tokenizers::tokenizer::{AddedVocabulary, Model, PreTokenizer, Token};
use tokenizers::{OffsetReferential, OffsetType};

use crate::decoding::Decoding;
use crate::error::{Error, Result};

/// What one id stands for; ranges are of the table's arena.
struct Entry {
    text: Range<u32>,
    bytes: Range<u32>,
    first_bytes: Range<u32>,
    special: bool,
}

pub struct TokenView<'a> {
    pub text: &'a [u8],
    pub bytes: &'a [u8],
    pub first_bytes: &'a [u8],
    pub special: bool,
}

pub struct Tokenizer {
    inner: tokenizers::Tokenizer,
    /// The same added tokens, but the special ones aren't looked for.
    plain: AddedVocabulary,
    ids: HashMap<String, u32>,
    entries: Vec<Option<Entry>>,
    arena: Vec<u8>,
    /// Texts of the special tokens, longest first.
    special_texts: Vec<String>,
    prefix_id: Option<u32>,
}

impl Tokenizer {
    pub fn from_json(json: &[u8]) -> Result<Self> {
        let mut inner = tokenizers::Tokenizer::from_bytes(json).map_err(Error::invalid)?;
        // Prompts are neither cut nor padded.
        inner.with_truncation(None).map_err(Error::invalid)?;
        inner.with_padding(None);
        let decoder = serde_json::to_value(inner.get_decoder()).map_err(Error::invalid)?;
        Self::new(inner, Decoding::from_json(&decoder)?, json.len())
    }

    /// An id of `most_ids` or above is refused: it would only make the table large.
    pub fn new(inner: tokenizers::Tokenizer, decoding: Decoding, most_ids: usize) -> Result<Self> {
        let mut plain = inner.get_added_vocabulary().clone();
        plain.set_encode_special_tokens(true);
        let ids = inner.get_vocab(true);
        let prefix_id = prefix_id(&inner)?;
        let mut tokenizer =
            Self { inner, plain, ids, entries: Vec::new(), arena: Vec::new(), special_texts: Vec::new(), prefix_id };
        tokenizer.fill_table(&decoding, most_ids)?;
        Ok(tokenizer)
    }

    fn fill_table(&mut self, decoding: &Decoding, most_ids: usize) -> Result<()> {
        let size = self.ids.values().max().map_or(0, |max| *max as usize + 1);
        if size > most_ids {
            return Err(Error::Invalid(format!("token id {} is too large", size - 1)));
        }
        self.entries.resize_with(size, || None);
        let added = self.inner.get_added_vocabulary();
        for (text, &id) in &self.ids {
            let special = added.is_special_token(text);
            // An added token that is normalized on its way in is undone from its normalized form.
            let spelling = added.simple_id_to_token(id).unwrap_or_else(|| text.clone());
            let bytes = decoding.bytes(&spelling, false);
            let first = decoding.bytes(&spelling, true);
            let bytes_range = append(&mut self.arena, &bytes)?;
            let first_bytes = if first == bytes { bytes_range.clone() } else { append(&mut self.arena, &first)? };
            let text_range = append(&mut self.arena, text.as_bytes())?;
            self.entries[id as usize] = Some(Entry { text: text_range, bytes: bytes_range, first_bytes, special });
            if special {
                self.special_texts.push(text.clone());
            }
        }
        self.special_texts.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        Ok(())
    }

    /// Token ids of `text`. `plain`: special-token text is text. `sentinel` breaks special-token text that must stay
    /// text: it is taken out once the special tokens have been found, and leaves no other trace.
    pub fn encode(&self, text: &str, plain: bool, sentinel: Option<char>) -> Result<Vec<u32>> {
        let added = if plain { &self.plain } else { self.inner.get_added_vocabulary() };
        let mut pieces = added.extract_and_normalize(self.inner.get_normalizer(), text);
        if let Some(sentinel) = sentinel {
            pieces.normalize(|piece| piece.replace(sentinel, "")).map_err(Error::invalid)?;
        }
        if let Some(splitter) = self.inner.get_pre_tokenizer() {
            splitter.pre_tokenize(&mut pieces).map_err(Error::invalid)?;
        }
        let guard = plain || sentinel.is_some();
        pieces
            .tokenize(|piece| match guard {
                true => self.tokenize_plain(piece.get()),
                false => self.inner.get_model().tokenize(piece.get()),
            })
            .map_err(Error::invalid)?;
        let splits = pieces.get_splits(OffsetReferential::Normalized, OffsetType::Byte);
        let tokens = splits.iter().filter_map(|(_, _, tokens)| tokens.as_ref()).flatten();
        Ok(tokens.map(|token| token.id).collect())
    }

    /// The model's own tokens of a piece, where one that spells a special token is taken apart: a unigram model, or one
    /// that looks whole words up first, knows these texts like any other.
    fn tokenize_plain(&self, piece: &str) -> tokenizers::Result<Vec<Token>> {
        let model = self.inner.get_model();
        let tokens = model.tokenize(piece)?;
        let spells_special = |token: &Token| {
            let (begin, end) = token.offsets;
            self.is_special(token.id) && piece.get(begin..end) == Some(token.value.as_str())
        };
        if !tokens.iter().any(spells_special) {
            return Ok(tokens);
        }
        let mut out = Vec::with_capacity(tokens.len() + 4);
        for token in tokens {
            if !spells_special(&token) {
                out.push(token);
                continue;
            }
            let head = token.value.chars().next().map_or(0, char::len_utf8);
            if head == token.value.len() {
                out.push(token); // a special token of one character: nothing else spells it
                continue;
            }
            out.extend(self.tokenize_plain(&token.value[..head])?);
            out.extend(self.tokenize_plain(&token.value[head..])?);
        }
        Ok(out)
    }

    pub fn size(&self) -> usize {
        self.entries.len()
    }

    pub fn id(&self, text: &str) -> Option<u32> {
        self.ids.get(text).copied()
    }

    pub fn prefix_id(&self) -> Option<u32> {
        self.prefix_id
    }

    pub fn special_texts(&self) -> &[String] {
        &self.special_texts
    }

    pub fn token(&self, id: u32) -> Option<TokenView<'_>> {
        let entry = self.entries.get(id as usize)?.as_ref()?;
        let view = |range: &Range<u32>| &self.arena[range.start as usize..range.end as usize];
        Some(TokenView {
            text: view(&entry.text),
            bytes: view(&entry.bytes),
            first_bytes: view(&entry.first_bytes),
            special: entry.special,
        })
    }

    fn is_special(&self, id: u32) -> bool {
        self.entries.get(id as usize).and_then(Option::as_ref).is_some_and(|entry| entry.special)
    }
}

fn append(arena: &mut Vec<u8>, bytes: &[u8]) -> Result<Range<u32>> {
    let begin = arena.len();
    arena.extend_from_slice(bytes);
    match (u32::try_from(begin), u32::try_from(arena.len())) {
        (Ok(begin), Ok(end)) => Ok(begin..end),
        _ => Err(Error::Invalid("a vocabulary of more than 4 GiB".into())),
    }
}

/// What the post-processor puts in front of a text: the first id that is there only with special tokens asked for.
fn prefix_id(inner: &tokenizers::Tokenizer) -> Result<Option<u32>> {
    if inner.get_post_processor().is_none() {
        return Ok(None);
    }
    let bare = inner.encode("a", false).map_err(Error::invalid)?;
    let full = inner.encode("a", true).map_err(Error::invalid)?;
    let first = full.get_ids().first().copied();
    let is_added = full.get_special_tokens_mask().first() == Some(&1);
    Ok(first.filter(|_| is_added && full.len() > bare.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unigram() -> Tokenizer {
        let json = r#"{"version":"1.0","truncation":{"direction":"Right","max_length":2,"strategy":"LongestFirst","stride":0},
            "padding":null,
            "added_tokens":[{"id":1,"content":"<s>","single_word":false,"lstrip":false,"rstrip":false,"normalized":false,"special":true}],
            "normalizer":null,"pre_tokenizer":null,
            "post_processor":{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"<s>","type_id":0}},{"Sequence":{"id":"A","type_id":0}}],
              "pair":[{"Sequence":{"id":"A","type_id":0}},{"Sequence":{"id":"B","type_id":1}}],
              "special_tokens":{"<s>":{"id":"<s>","ids":[1],"tokens":["<s>"]}}},
            "decoder":null,
            "model":{"type":"Unigram","unk_id":0,"vocab":[["<unk>",0.0],["<s>",0.0],["<",-3.0],["s",-3.0],[">",-3.0],["a",-2.0]]}}"#;
        Tokenizer::from_json(json.as_bytes()).unwrap()
    }

    #[test]
    fn special_text_is_a_token_only_where_it_is_parsed() {
        let tokenizer = unigram();
        assert_eq!(tokenizer.encode("a<s>a", false, None).unwrap(), [5, 1, 5]);
        assert_eq!(tokenizer.encode("a<s>a", true, None).unwrap(), [5, 2, 3, 4, 5]);
        assert_eq!(tokenizer.encode("<s>a<\u{14400}s>a", false, Some('\u{14400}')).unwrap(), [1, 5, 2, 3, 4, 5]);
    }

    #[test]
    fn prompts_are_not_cut_and_the_prefix_is_known() {
        let tokenizer = unigram();
        assert_eq!(tokenizer.encode("aaaaa", false, None).unwrap().len(), 5);
        assert_eq!(tokenizer.prefix_id(), Some(1));
        assert_eq!(tokenizer.special_texts(), ["<s>"]);
    }

    #[test]
    fn what_is_no_tokenizer_is_an_error() {
        for json in ["", "{}", "[1]", "{\"model\":{\"type\":\"BPE\"}}"] {
            assert!(Tokenizer::from_json(json.as_bytes()).is_err(), "{json}");
        }
    }
}
