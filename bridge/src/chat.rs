// From messages to a prompt: what a template sees, where a last message is left open, and which text is only text.

use std::collections::{BTreeMap, HashSet};

use minijinja::value::Value;
use serde_json::{Map, Value as Json};

use crate::chat_template::ChatTemplate;
use crate::error::{Error, Result};
use crate::python::is_space;
use crate::tokenizer::Tokenizer;

pub struct Chat<'a> {
    /// JSON: an array of objects.
    pub messages: &'a [u8],
    /// JSON: an array; empty for none.
    pub tools: &'a [u8],
    /// JSON: an object; empty for none.
    pub variables: &'a [u8],
    pub add_generation_prompt: bool,
    pub continue_final_message: bool,
    /// Local time, seconds since 1970.
    pub now_s: i64,
}

pub struct Prompt {
    pub text: String,
    pub ids: Vec<u32>,
}

/// Marks where the last message's content ends. The space at its end shows whether a template trims.
const CONTINUE_TAG: &str = "CONTINUE_FINAL_MESSAGE_TAG ";
/// Names that a message's reasoning goes by; the first is the one to use.
const REASONING: [&str; 3] = ["reasoning_content", "thinking", "reasoning"];

/// Renders, and with a tokenizer gives the prompt's ids too. There, special-token text that a message or a tool brings
/// along is text like any other: it is broken by a character that nobody uses, and mended once the special tokens of the
/// template itself have been found.
pub fn prompt(template: &ChatTemplate, chat: &Chat, tokenizer: Option<&Tokenizer>) -> Result<Prompt> {
    let mut messages = parse("messages", chat.messages, "[]")?;
    let mut tools = parse("tools", chat.tools, "null")?;
    if tools.as_array().is_some_and(Vec::is_empty) {
        tools = Json::Null; // none and no list are the same
    }
    let specials = tokenizer.map(Specials::new);
    let sentinel = match &specials {
        Some(specials) if specials.occur_in(&messages) || specials.occur_in(&tools) => {
            let sentinel = unused_character(&[chat.messages, chat.tools, chat.variables], template.source())?;
            specials.break_in(&mut messages, sentinel);
            specials.break_in(&mut tools, sentinel);
            Some(sentinel)
        }
        _ => None,
    };
    let rendered = render(template, chat, messages, tools, sentinel)?;
    let ids = tokenizer.map_or(Ok(Vec::new()), |tokenizer| tokenizer.encode(&rendered, false, sentinel))?;
    let text = sentinel.map_or(rendered.clone(), |sentinel| rendered.replace(sentinel, ""));
    Ok(Prompt { text, ids })
}

fn render(template: &ChatTemplate, chat: &Chat, messages: Json, tools: Json, sentinel: Option<char>) -> Result<String> {
    let Json::Array(mut messages) = messages else {
        return Err(Error::Invalid("messages: expected a list".into()));
    };
    messages.iter_mut().try_for_each(alias_reasoning)?;
    let last = if chat.continue_final_message { Some(tag_last(template, &mut messages)?) } else { None };

    let mut variables = BTreeMap::from([
        ("messages".to_string(), messages.iter().map(value_of).collect()),
        ("tools".to_string(), value_of(&tools)),
        ("documents".to_string(), Value::from(())),
        ("add_generation_prompt".to_string(), Value::from(chat.add_generation_prompt)),
    ]);
    let Json::Object(own) = parse("template variables", chat.variables, "{}")? else {
        return Err(Error::Invalid("template variables: expected an object".into()));
    };
    variables.extend(own.into_iter().map(|(name, value)| (name, value_of(&value))));
    let input_bytes = chat.messages.len() + chat.tools.len() + chat.variables.len();
    let rendered = template.render(variables, input_bytes, chat.now_s, sentinel)?;
    last.map_or(Ok(rendered.clone()), |content| cut_after(&rendered, &content))
}

/// JSON as a template sees it, keys in their order.
fn value_of(json: &Json) -> Value {
    match json {
        Json::Null => Value::from(()),
        Json::Bool(value) => Value::from(*value),
        Json::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(integer), _) => Value::from(integer),
            (_, Some(integer)) => Value::from(integer),
            _ => Value::from(number.as_f64().unwrap_or(f64::NAN)),
        },
        Json::String(text) => Value::from(text.as_str()),
        Json::Array(items) => items.iter().map(value_of).collect(),
        Json::Object(fields) => Value::from_pairs(fields.iter().map(|(key, value)| (key.as_str(), value_of(value)))),
    }
}

fn parse(what: &str, json: &[u8], absent: &str) -> Result<Json> {
    let json = if json.is_empty() { absent.as_bytes() } else { json };
    serde_json::from_slice(json).map_err(|error| Error::Invalid(format!("{what}: {error}")))
}

/// Templates read a message's reasoning by one name or another: each sees it.
fn alias_reasoning(message: &mut Json) -> Result<()> {
    let Json::Object(fields) = message else {
        return Err(Error::Invalid("messages: expected a list of objects".into()));
    };
    let reasoning = REASONING.iter().find_map(|name| fields.get(*name).filter(|value| !value.is_null()).cloned());
    if let Some(reasoning) = reasoning {
        let mut aliased = Map::from_iter([("thinking".to_string(), reasoning.clone())]);
        aliased.extend(std::mem::take(fields));
        aliased.insert("reasoning_content".to_string(), reasoning);
        *fields = aliased;
    }
    Ok(())
}

/// Puts the tag behind the last message's text, and gives that text.
fn tag_last(template: &ChatTemplate, messages: &mut [Json]) -> Result<String> {
    let refused = |reason: &str| Error::Invalid(format!("the last message can't be continued: {reason}"));
    if !template.source().contains("content") {
        return Err(refused("the chat template doesn't read its content"));
    }
    let last = messages.last_mut().ok_or_else(|| refused("there is none"))?;
    let content = match &mut last["content"] {
        Json::Array(parts) => {
            let texts = parts.iter_mut().rev().filter_map(|part| part.get_mut("text"));
            texts.into_iter().next().ok_or_else(|| refused("it has no text"))?
        }
        content => content,
    };
    let Json::String(text) = content else {
        return Err(refused("it has no text"));
    };
    let untagged = text.clone();
    text.push_str(CONTINUE_TAG);
    Ok(untagged)
}

/// The rendering up to where the last message's text ends.
fn cut_after(rendered: &str, content: &str) -> Result<String> {
    let tag = CONTINUE_TAG.trim_end();
    let at = rendered.rfind(tag).filter(|_| rendered.contains(content.trim_matches(is_space)));
    let Some(at) = at else {
        return Err(Error::Invalid("the last message can't be continued: the chat template changes its text".into()));
    };
    let before = &rendered[..at];
    let kept = rendered[at..].starts_with(CONTINUE_TAG);
    Ok(if kept { before } else { before.trim_end_matches(is_space) }.to_string())
}

/// A tokenizer's special texts, to be found in strings.
struct Specials<'a> {
    /// By the first byte of their texts.
    by_first: BTreeMap<u8, Vec<&'a str>>,
}

impl<'a> Specials<'a> {
    fn new(tokenizer: &'a Tokenizer) -> Self {
        let mut by_first: BTreeMap<u8, Vec<&str>> = BTreeMap::new();
        for text in tokenizer.special_texts() {
            // One of a single character has no inside to be broken at.
            if text.chars().nth(1).is_some() {
                by_first.entry(text.as_bytes()[0]).or_default().push(text);
            }
        }
        Self { by_first }
    }

    fn occur_in(&self, value: &Json) -> bool {
        match value {
            Json::String(text) => self.find(text, 0).is_some(),
            Json::Array(items) => items.iter().any(|item| self.occur_in(item)),
            Json::Object(fields) => fields.iter().any(|(key, item)| self.find(key, 0).is_some() || self.occur_in(item)),
            _ => false,
        }
    }

    fn find(&self, text: &str, from: usize) -> Option<usize> {
        let begins = |at: &usize| {
            let with_first = self.by_first.get(&text.as_bytes()[*at]);
            with_first.is_some_and(|specials| {
                specials.iter().any(|special| text.as_bytes()[*at..].starts_with(special.as_bytes()))
            })
        };
        (from..text.len()).find(begins)
    }

    fn break_in(&self, value: &mut Json, sentinel: char) {
        match value {
            Json::String(text) => {
                if let Some(broken) = self.broken(text, sentinel) {
                    *text = broken;
                }
            }
            Json::Array(items) => items.iter_mut().for_each(|item| self.break_in(item, sentinel)),
            Json::Object(fields) => {
                let entries = std::mem::take(fields).into_iter().map(|(key, mut item)| {
                    self.break_in(&mut item, sentinel);
                    (self.broken(&key, sentinel).unwrap_or(key), item)
                });
                *fields = entries.collect();
            }
            _ => {}
        }
    }

    /// With the sentinel behind the first character of each special text; nothing where there is none.
    fn broken(&self, text: &str, sentinel: char) -> Option<String> {
        let mut at = self.find(text, 0)?;
        let mut out = String::with_capacity(text.len() + 16);
        let mut copied = 0;
        loop {
            let inside = at + text[at..].chars().next().map_or(1, char::len_utf8);
            out.push_str(&text[copied..inside]);
            out.push(sentinel);
            copied = inside;
            match self.find(text, inside) {
                Some(next) => at = next,
                None => break,
            }
        }
        out.push_str(&text[copied..]);
        Some(out)
    }
}

/// A character that occurs in none of the texts. It's a letter that no rule of printing, casing or normalization changes:
/// a hieroglyph of Anatolia, or of Egypt where all those are taken.
fn unused_character(json: &[&[u8]], source: &str) -> Result<char> {
    let taken: HashSet<char> =
        json.iter().flat_map(|json| characters(json)).chain(source.chars()).filter(|c| *c >= '\u{13000}').collect();
    ('\u{14400}'..='\u{14646}')
        .chain('\u{13000}'..='\u{1342e}')
        .find(|c| !taken.contains(c))
        .ok_or_else(|| Error::Invalid("messages with every hieroglyph there is".into()))
}

/// JSON may spell a character as an escape, so that its strings are read, not searched.
fn characters(json: &[u8]) -> Vec<char> {
    fn collect(value: &Json, out: &mut Vec<char>) {
        match value {
            Json::String(text) => out.extend(text.chars()),
            Json::Array(items) => items.iter().for_each(|item| collect(item, out)),
            Json::Object(fields) => fields.iter().for_each(|(key, item)| {
                out.extend(key.chars());
                collect(item, out);
            }),
            _ => {}
        }
    }
    let mut out = Vec::new();
    if let Ok(value) = serde_json::from_slice(json) {
        collect(&value, &mut out);
    }
    out
}
