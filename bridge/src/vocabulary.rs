// Tokenizers made from a vocabulary as GGUF metadata describes it.

use ahash::AHashMap;
use tokenizers::models::bpe::BPE;
use tokenizers::models::unigram::Unigram;
use tokenizers::models::wordpiece::WordPiece;
use tokenizers::normalizers::replace::ReplacePattern;
use tokenizers::normalizers::{BertNormalizer, NormalizerWrapper, Precompiled, Prepend, Replace, Sequence, Strip};
use tokenizers::pre_tokenizers::bert::BertPreTokenizer;
use tokenizers::{AddedToken, ModelWrapper};

use crate::decoding::Decoding;
use crate::error::{Error, Result};
use crate::pre_tokenizer;
use crate::tokenizer::Tokenizer;

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    ByteLevelBpe,
    SentencePieceBpe,
    Unigram,
    WordPiece,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum TokenType {
    Normal,
    Unknown,
    Control,
    UserDefined,
    Unused,
    Byte,
}

pub struct Vocabulary<'a> {
    pub kind: Kind,
    pub tokens: Vec<&'a str>,
    /// Of each token; empty: all are normal.
    pub types: Vec<TokenType>,
    /// Of each token; empty: none.
    pub scores: &'a [f32],
    /// "left right", best first.
    pub merges: Vec<&'a str>,
    pub pre: &'a str,
    pub add_space_prefix: bool,
    pub remove_extra_spaces: bool,
    pub character_map: &'a [u8],
    pub unknown_id: Option<u32>,
}

const WORD_MARK: char = '\u{2581}';

impl Vocabulary<'_> {
    pub fn build(&self) -> Result<Tokenizer> {
        if self.tokens.is_empty() {
            return Err(Error::Invalid("a vocabulary without tokens".into()));
        }
        match self.kind {
            Kind::ByteLevelBpe => self.byte_level_bpe(),
            Kind::SentencePieceBpe => self.sentence_piece_bpe(),
            Kind::Unigram => self.unigram(),
            Kind::WordPiece => self.word_piece(),
        }
    }

    fn type_of(&self, id: usize) -> TokenType {
        self.types.get(id).copied().unwrap_or(TokenType::Normal)
    }

    fn ids(&self) -> AHashMap<String, u32> {
        // Of two tokens with one text, the first keeps it.
        let mut ids = AHashMap::with_capacity(self.tokens.len());
        for (id, token) in self.tokens.iter().enumerate() {
            ids.entry((*token).to_string()).or_insert(id as u32);
        }
        ids
    }

    fn unknown_text(&self) -> Result<Option<&str>> {
        match self.unknown_id {
            None => Ok(None),
            Some(id) => match self.tokens.get(id as usize) {
                Some(text) => Ok(Some(text)),
                None => Err(Error::Invalid(format!("unknown token {id} of {}", self.tokens.len()))),
            },
        }
    }

    /// Control tokens are special; user-defined ones are found whole in a text, but are part of it.
    fn add_tokens(&self, tokenizer: &mut tokenizers::Tokenizer, control: impl Fn(&str) -> bool) -> Result<()> {
        let added = self.tokens.iter().enumerate().filter_map(|(id, token)| match self.type_of(id) {
            TokenType::Control if control(token) => Some(AddedToken::from(*token, true)),
            TokenType::UserDefined => Some(AddedToken::from(*token, false).normalized(false)),
            _ => None,
        });
        tokenizer.add_tokens(added).map_err(Error::invalid)?;
        Ok(())
    }

    fn byte_level_bpe(&self) -> Result<Tokenizer> {
        let parts = pre_tokenizer::find(self.pre)?;
        let merges = self.listed_merges()?;
        let model = BPE::builder()
            .vocab_and_merges(self.ids(), merges)
            .ignore_merges(parts.whole_words)
            .build()
            .map_err(Error::invalid)?;
        let mut tokenizer = tokenizers::Tokenizer::new(model);
        tokenizer.with_normalizer(parts.normalizer).map_err(Error::invalid)?;
        tokenizer.with_pre_tokenizer(Some(parts.splitter));
        self.add_tokens(&mut tokenizer, |_| true)?;
        Tokenizer::new(tokenizer, Decoding::byte_level(), self.tokens.len())
    }

    fn listed_merges(&self) -> Result<Vec<(String, String)>> {
        let split = |merge: &&str| match merge.split_once(' ') {
            Some((left, right)) if !left.is_empty() && !right.is_empty() => Ok((left.to_string(), right.to_string())),
            _ => Err(Error::Invalid("a merge that isn't two tokens and a space between".into())),
        };
        self.merges.iter().map(split).collect()
    }

    fn sentence_piece_bpe(&self) -> Result<Tokenizer> {
        let ids = self.ids();
        let merges = if self.merges.is_empty() { self.derived_merges(&ids)? } else { self.listed_merges()? };
        let mut builder = BPE::builder().vocab_and_merges(ids, merges).fuse_unk(true).byte_fallback(true);
        if let Some(unknown) = self.unknown_text()? {
            builder = builder.unk_token(unknown.to_string());
        }
        let mut tokenizer = tokenizers::Tokenizer::new(builder.build().map_err(Error::invalid)?);
        tokenizer.with_normalizer(Some(Sequence::new(self.mark_words()?))).map_err(Error::invalid)?;
        self.add_tokens(&mut tokenizer, |_| true)?;
        Tokenizer::new(tokenizer, Decoding::sentence_piece(self.add_space_prefix), self.tokens.len())
    }

    /// SentencePiece keeps no merges: two tokens merge where their text together is a token, the one with the best
    /// score first.
    fn derived_merges(&self, ids: &AHashMap<String, u32>) -> Result<Vec<(String, String)>> {
        if self.scores.len() != self.tokens.len() {
            return Err(Error::Invalid(format!("{} scores for {} tokens", self.scores.len(), self.tokens.len())));
        }
        struct Merge<'a> {
            score: f32,
            lengths: (usize, usize),
            left: &'a str,
            right: &'a str,
        }
        let merges_into = |id: u32| matches!(self.type_of(id as usize), TokenType::Normal | TokenType::UserDefined);
        let mut merges = Vec::new();
        for (id, token) in self.tokens.iter().enumerate() {
            if !merges_into(id as u32) || ids.get(*token) != Some(&(id as u32)) {
                continue;
            }
            let first = merges.len();
            let length = token.chars().count();
            for (index, (at, _)) in token.char_indices().enumerate().skip(1) {
                let (left, right) = token.split_at(at);
                let (Some(&left_id), Some(&right_id)) = (ids.get(left), ids.get(right)) else { continue };
                if merges_into(left_id) && merges_into(right_id) {
                    let lengths = (index, length - index);
                    merges.push(((left_id, right_id), Merge { score: self.scores[id], lengths, left, right }));
                }
            }
            merges[first..].sort_by_key(|(pair, _)| *pair);
        }
        merges.sort_by(|(_, a), (_, b)| b.score.total_cmp(&a.score).then_with(|| b.lengths.cmp(&a.lengths)));
        Ok(merges.into_iter().map(|(_, merge)| (merge.left.to_string(), merge.right.to_string())).collect())
    }

    /// Spaces become word marks, and one stands in front of a text.
    fn mark_words(&self) -> Result<Vec<NormalizerWrapper>> {
        let mut steps: Vec<NormalizerWrapper> = Vec::new();
        if self.add_space_prefix {
            steps.push(Prepend::new(WORD_MARK.to_string()).into());
        }
        let space = ReplacePattern::String(" ".into());
        steps.push(Replace::new(space, WORD_MARK.to_string()).map_err(Error::invalid)?.into());
        Ok(steps)
    }

    fn unigram(&self) -> Result<Tokenizer> {
        if self.scores.len() != self.tokens.len() {
            return Err(Error::Invalid(format!("{} scores for {} tokens", self.scores.len(), self.tokens.len())));
        }
        self.unknown_text()?;
        let scored =
            self.tokens.iter().zip(self.scores).map(|(token, score)| ((*token).to_string(), f64::from(*score)));
        let has_bytes = self.types.contains(&TokenType::Byte);
        let unknown = self.unknown_id.map(|id| id as usize);
        let model = Unigram::from(scored.collect(), unknown, has_bytes).map_err(Error::invalid)?;
        let mut steps: Vec<NormalizerWrapper> = Vec::new();
        if !self.character_map.is_empty() {
            steps.push(Precompiled::from(self.character_map).map_err(Error::invalid)?.into());
        }
        if self.remove_extra_spaces {
            steps.push(Strip::new(true, true).into());
            let run = ReplacePattern::Regex(" {2,}".into());
            steps.push(Replace::new(run, " ").map_err(Error::invalid)?.into());
        }
        steps.extend(self.mark_words()?);
        let mut tokenizer = tokenizers::Tokenizer::new(ModelWrapper::from(model));
        tokenizer.with_normalizer(Some(Sequence::new(steps))).map_err(Error::invalid)?;
        self.add_tokens(&mut tokenizer, |_| true)?;
        Tokenizer::new(tokenizer, Decoding::sentence_piece(self.add_space_prefix), self.tokens.len())
    }

    /// GGUF marks the tokens that begin a word; the model marks those that don't.
    fn word_piece(&self) -> Result<Tokenizer> {
        let is_bracketed = |token: &str| token.starts_with('[') && token.ends_with(']') && token.len() > 2;
        let marked = self.tokens.iter().any(|token| token.starts_with(WORD_MARK));
        let spelling = |token: &str| match token.strip_prefix(WORD_MARK) {
            _ if !marked || is_bracketed(token) => token.to_string(),
            Some(word) => word.to_string(),
            None => format!("##{token}"),
        };
        let mut ids = AHashMap::with_capacity(self.tokens.len());
        for (id, token) in self.tokens.iter().enumerate() {
            ids.entry(spelling(token)).or_insert(id as u32);
        }
        // A vocabulary that has capital letters was learnt with them.
        let has_capitals = |token: &&str| !is_bracketed(token) && token.chars().any(char::is_uppercase);
        let cased = self.tokens.iter().any(has_capitals);
        let unknown = self.unknown_text()?.unwrap_or("[UNK]").to_string();
        let model = WordPiece::builder().vocab(ids).unk_token(unknown).build().map_err(Error::invalid)?;
        let mut tokenizer = tokenizers::Tokenizer::new(model);
        let normalizer = BertNormalizer::new(true, true, None, !cased);
        tokenizer.with_normalizer(Some(normalizer)).map_err(Error::invalid)?;
        tokenizer.with_pre_tokenizer(Some(BertPreTokenizer));
        self.add_tokens(&mut tokenizer, is_bracketed)?;
        Tokenizer::new(tokenizer, Decoding::word_piece(), self.tokens.len())
    }
}
