// JSON as Python's json.dumps writes it.

use std::fmt::Write;

use minijinja::value::{Value, ValueKind};
use minijinja::{Error, ErrorKind};

use crate::python;

pub struct JsonStyle {
    pub ensure_ascii: bool,
    pub sort_keys: bool,
    /// One level's indentation; none: all on one line.
    pub indent: Option<String>,
    /// Between items, and between a key and its value.
    pub item: String,
    pub key: String,
    /// A character that is never escaped.
    pub sentinel: Option<char>,
}

pub fn write(value: &Value, style: &JsonStyle) -> Result<String, Error> {
    let mut writer = Writer { out: String::new(), style, depth: 0 };
    writer.value(value)?;
    Ok(writer.out)
}

/// Deeper than any request's JSON may be.
const MAX_DEPTH: usize = 256;

struct Writer<'a> {
    out: String,
    style: &'a JsonStyle,
    depth: usize,
}

impl Writer<'_> {
    fn value(&mut self, value: &Value) -> Result<(), Error> {
        python::check_size(&self.out)?;
        match value.kind() {
            ValueKind::None => self.out.push_str("null"),
            ValueKind::Bool => self.out.push_str(if value.is_true() { "true" } else { "false" }),
            ValueKind::Number => self.out.push_str(&number(value)?),
            ValueKind::String => self.string(value.as_str().unwrap_or_default()),
            ValueKind::Seq => {
                let items: Vec<Value> = value.try_iter()?.collect();
                self.group('[', ']', items, |writer, item| writer.value(&item))?;
            }
            ValueKind::Map => {
                let mut entries = Vec::new();
                for key in value.try_iter()? {
                    entries.push((key_text(&key)?, value.get_item(&key)?));
                }
                if self.style.sort_keys {
                    entries.sort_by(|(a, _), (b, _)| a.cmp(b));
                }
                self.group('{', '}', entries, |writer, (key, item)| {
                    writer.string(&key);
                    writer.out.push_str(&writer.style.key);
                    writer.value(&item)
                })?;
            }
            kind => return Err(not_serializable(kind)),
        }
        Ok(())
    }

    fn group<T>(
        &mut self,
        open: char,
        close: char,
        items: Vec<T>,
        each: impl Fn(&mut Self, T) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.out.push(open);
        if items.is_empty() {
            self.out.push(close);
            return Ok(());
        }
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(Error::new(ErrorKind::InvalidOperation, "JSON nested too deeply"));
        }
        for (index, item) in items.into_iter().enumerate() {
            if index > 0 {
                self.out.push_str(&self.style.item);
            }
            self.line();
            each(self, item)?;
        }
        self.depth -= 1;
        self.line();
        self.out.push(close);
        Ok(())
    }

    fn line(&mut self) {
        if let Some(indent) = &self.style.indent {
            self.out.push('\n');
            for _ in 0..self.depth {
                self.out.push_str(indent);
            }
        }
    }

    fn string(&mut self, text: &str) {
        self.out.push('"');
        for c in text.chars() {
            match c {
                '"' => self.out.push_str("\\\""),
                '\\' => self.out.push_str("\\\\"),
                '\n' => self.out.push_str("\\n"),
                '\r' => self.out.push_str("\\r"),
                '\t' => self.out.push_str("\\t"),
                '\u{8}' => self.out.push_str("\\b"),
                '\u{c}' => self.out.push_str("\\f"),
                c if c < ' ' => self.escape(c),
                c if self.style.ensure_ascii && c > '~' && Some(c) != self.style.sentinel => self.escape(c),
                c => self.out.push(c),
            }
        }
        self.out.push('"');
    }

    fn escape(&mut self, c: char) {
        for unit in c.encode_utf16(&mut [0; 2]) {
            write!(self.out, "\\u{unit:04x}").expect("a string takes all");
        }
    }
}

fn number(value: &Value) -> Result<String, Error> {
    Ok(match f64::try_from(value.clone()) {
        Ok(float) if !value.is_integer() && float.is_nan() => "NaN".into(),
        Ok(float) if !value.is_integer() && float.is_infinite() => {
            if float > 0.0 {
                "Infinity".into()
            } else {
                "-Infinity".into()
            }
        }
        _ => return python::text(value),
    })
}

fn key_text(key: &Value) -> Result<String, Error> {
    match key.kind() {
        ValueKind::String => Ok(key.as_str().unwrap_or_default().to_string()),
        ValueKind::None => Ok("null".into()),
        ValueKind::Bool => Ok(if key.is_true() { "true" } else { "false" }.into()),
        ValueKind::Number => number(key),
        kind => Err(not_serializable(kind)),
    }
}

fn not_serializable(kind: ValueKind) -> Error {
    Error::new(ErrorKind::InvalidOperation, format!("{kind} has no JSON form"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn style() -> JsonStyle {
        JsonStyle {
            ensure_ascii: false,
            sort_keys: false,
            indent: None,
            item: ", ".into(),
            key: ": ".into(),
            sentinel: None,
        }
    }

    #[test]
    fn strings_are_escaped_as_python_does() {
        let value = Value::from("\"\\/\u{1}\u{7f}\u{e9}\u{1f600}\u{fdd0}<&>");
        assert_eq!(write(&value, &style()).unwrap(), "\"\\\"\\\\/\\u0001\u{7f}\u{e9}\u{1f600}\u{fdd0}<&>\"");
        let ascii = JsonStyle { ensure_ascii: true, sentinel: Some('\u{fdd0}'), ..style() };
        assert_eq!(write(&value, &ascii).unwrap(), "\"\\\"\\\\/\\u0001\\u007f\\u00e9\\ud83d\\ude00\u{fdd0}<&>\"");
    }

    #[test]
    fn what_has_no_json_is_an_error() {
        assert!(write(&Value::UNDEFINED, &style()).is_err());
    }
}
