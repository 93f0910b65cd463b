// The pre-tokenizers of byte-level BPE vocabularies, by the names that GGUF files give them.

use tokenizers::normalizers::NFC;
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::pre_tokenizers::digits::Digits;
use tokenizers::pre_tokenizers::punctuation::Punctuation;
use tokenizers::pre_tokenizers::sequence::Sequence;
use tokenizers::pre_tokenizers::split::{Split, SplitPattern};
use tokenizers::tokenizer::SplitDelimiterBehavior;
use tokenizers::{NormalizerWrapper, PreTokenizerWrapper};

use crate::error::{Error, Result};

/// One way of cutting a text into words.
struct Recipe {
    names: &'static [&'static str],
    cuts: &'static [Cut],
    /// The text is composed (NFC) first.
    nfc: bool,
    /// A word that is in the vocabulary is its token, whatever the merges say.
    whole_words: bool,
}

enum Cut {
    /// What matches stands alone.
    Regex(&'static str),
    /// Each digit alone, or runs of them.
    Digits { individual: bool },
    /// Runs of punctuation.
    Punctuation,
    /// GPT-2's own expression.
    Gpt2,
}

const CL100K: &str = concat!(
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}",
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
);
const QWEN2: &str = concat!(
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}",
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
);
const TEKKEN: &str = concat!(
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+",
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*",
    r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
);
const O200K: &str = concat!(
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
);
const BLOOM: &str = r" ?[^(\s|[.,!?…。，、।۔،])]+";
const DEEPSEEK_CJK: &str = "[\u{4e00}-\u{9fa5}\u{800}-\u{4e00}\u{ac00}-\u{d7ff}]+";
const DEEPSEEK3: &str = concat!(
    r##"[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"##,
    r"| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
);

const RECIPES: &[Recipe] = &[
    Recipe {
        names: &["gpt-2", "gpt2", "phi-2", "mpt", "olmo", "jais", "jina-es", "jina-de", "roberta-bpe", "trillion"],
        cuts: &[Cut::Gpt2],
        nfc: false,
        whole_words: false,
    },
    Recipe {
        names: &["smollm", "starcoder", "refact", "codeshell", "minerva-7b", "granite-code"],
        cuts: &[Cut::Digits { individual: true }, Cut::Gpt2],
        nfc: false,
        whole_words: false,
    },
    Recipe {
        names: &["command-r"],
        cuts: &[Cut::Digits { individual: true }, Cut::Gpt2],
        nfc: true,
        whole_words: false,
    },
    Recipe {
        names: &["llama-bpe", "llama3", "llama-v3", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2"],
        cuts: &[Cut::Regex(CL100K)],
        nfc: false,
        whole_words: true,
    },
    Recipe {
        names: &["dbrx", "smaug-bpe", "chatglm-bpe", "glm4"],
        cuts: &[Cut::Regex(CL100K)],
        nfc: false,
        whole_words: false,
    },
    Recipe {
        names: &["qwen2", "deepseek-r1-qwen", "megrez", "stablelm2"],
        cuts: &[Cut::Regex(QWEN2)],
        nfc: true,
        whole_words: false,
    },
    Recipe { names: &["tekken"], cuts: &[Cut::Regex(TEKKEN)], nfc: false, whole_words: true },
    Recipe { names: &["gpt-4o", "llama4"], cuts: &[Cut::Regex(O200K)], nfc: false, whole_words: true },
    Recipe {
        names: &["deepseek-coder"],
        cuts: &[
            Cut::Regex(r"[\r\n]"),
            Cut::Regex(r"\s?\p{L}+"),
            Cut::Regex(r"\s?\p{P}+"),
            Cut::Regex(DEEPSEEK_CJK),
            Cut::Digits { individual: true },
        ],
        nfc: false,
        whole_words: false,
    },
    Recipe {
        names: &["deepseek-v3"],
        cuts: &[
            Cut::Regex(r"\p{N}{1,3}"),
            Cut::Regex("[\u{4e00}-\u{9fa5}\u{3040}-\u{309f}\u{30a0}-\u{30ff}]+"),
            Cut::Regex(DEEPSEEK3),
        ],
        nfc: false,
        whole_words: false,
    },
    Recipe {
        names: &["falcon"],
        cuts: &[Cut::Punctuation, Cut::Gpt2, Cut::Digits { individual: false }, Cut::Regex("[0-9][0-9][0-9]")],
        nfc: false,
        whole_words: false,
    },
    Recipe {
        names: &["bloom", "poro-chat", "gpt3-finnish"],
        cuts: &[Cut::Regex(BLOOM)],
        nfc: false,
        whole_words: false,
    },
    Recipe {
        names: &["viking"],
        cuts: &[Cut::Regex(BLOOM), Cut::Digits { individual: true }],
        nfc: false,
        whole_words: false,
    },
    Recipe {
        names: &["default"],
        cuts: &[
            Cut::Regex(r"[\p{P}\$\+<=>\^~\|]+"),
            Cut::Regex(r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)"),
            Cut::Regex(r"\p{N}+"),
            Cut::Regex("[0-9][0-9][0-9]"),
        ],
        nfc: false,
        whole_words: false,
    },
];

/// What a name stands for, as the tokenizer's parts.
pub struct PreTokenizer {
    pub normalizer: Option<NormalizerWrapper>,
    pub splitter: PreTokenizerWrapper,
    pub whole_words: bool,
}

pub fn find(name: &str) -> Result<PreTokenizer> {
    let recipe = RECIPES
        .iter()
        .find(|recipe| recipe.names.contains(&name))
        .ok_or_else(|| Error::Unsupported(format!("the pre-tokenizer '{name}'")))?;
    let mut steps = recipe.cuts.iter().map(splitter).collect::<Result<Vec<_>>>()?;
    // Bytes are spelled as characters last; GPT-2's expression is part of that step.
    if !recipe.cuts.iter().any(|cut| matches!(cut, Cut::Gpt2)) {
        steps.push(ByteLevel::new(false, true, false).into());
    }
    Ok(PreTokenizer {
        normalizer: recipe.nfc.then(|| NFC.into()),
        splitter: Sequence::new(steps).into(),
        whole_words: recipe.whole_words,
    })
}

fn splitter(cut: &Cut) -> Result<PreTokenizerWrapper> {
    Ok(match cut {
        Cut::Regex(pattern) => {
            let pattern = SplitPattern::Regex((*pattern).into());
            Split::new(pattern, SplitDelimiterBehavior::Isolated, false).map_err(Error::invalid)?.into()
        }
        Cut::Digits { individual } => Digits::new(*individual).into(),
        Cut::Punctuation => Punctuation::new(SplitDelimiterBehavior::Contiguous).into(),
        Cut::Gpt2 => ByteLevel::new(false, true, true).into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokenizers::tokenizer::PreTokenizer as _;
    use tokenizers::{OffsetReferential, OffsetType, PreTokenizedString};

    fn words(name: &str, text: &str) -> Vec<String> {
        let mut pieces = PreTokenizedString::from(text);
        find(name).unwrap().splitter.pre_tokenize(&mut pieces).unwrap();
        let splits = pieces.get_splits(OffsetReferential::Original, OffsetType::Byte);
        splits.iter().map(|(_, (begin, end), _)| text[*begin..*end].to_string()).collect()
    }

    #[test]
    fn each_recipe_is_whole() {
        for recipe in RECIPES {
            for name in recipe.names {
                // Falcon's digits are looked for among the spelled bytes, which cuts characters.
                let foreign = if *name == "falcon" { "" } else { "\u{e9}\u{4f60}\u{597d}" };
                let text = format!("It's 1234 x{foreign}\r\n\r\n  , (a+b)=[c]! ");
                assert_eq!(words(name, &text).concat(), text, "{name}");
            }
        }
    }

    #[test]
    fn digits_fall_as_each_vocabulary_learnt_them() {
        assert_eq!(words("gpt-2", "a 1234"), ["a", " 1234"]);
        assert_eq!(words("smollm", "a 1234"), ["a", " ", "1", "2", "3", "4"]);
        assert_eq!(words("llama-bpe", "a 1234"), ["a", " ", "123", "4"]);
        assert_eq!(words("qwen2", "a 12"), ["a", " ", "1", "2"]);
        assert_eq!(words("falcon", "a 1234"), ["a", " ", "123", "4"]);
    }

    #[test]
    fn an_unknown_name_is_refused() {
        let error = find("nobody-knows").err().unwrap();
        assert!(matches!(error, Error::Unsupported(ref message) if message.contains("nobody-knows")));
    }
}
