// Python's way with values: how str() and repr() print them, and methods of its types that templates call.

use std::fmt::Write;
use std::sync::LazyLock;

use minijinja::formatting::{FormatStyle, format};
use minijinja::value::{Tuple, Value, ValueKind, from_args};
use minijinja::{Error, ErrorKind, State};
use minijinja_contrib::pycompat;
use regex::Regex;

/// What str() gives; an error for what is nested too deeply or too large.
pub fn text(value: &Value) -> Result<String, Error> {
    Ok(match value.kind() {
        ValueKind::String => value.as_str().unwrap_or_default().to_string(),
        ValueKind::Number | ValueKind::Seq | ValueKind::Map => {
            let mut out = String::new();
            write_repr(value, &mut out, 0)?;
            out
        }
        _ => value.to_string(),
    })
}

/// A list that holds another twice, and so on, is small but its text isn't.
pub fn check_size(text: &str) -> Result<(), Error> {
    const MOST_BYTES: usize = 8 << 20;
    if text.len() > MOST_BYTES { Err(Error::from(ErrorKind::OutOfFuel)) } else { Ok(()) }
}

pub fn is_tuple(value: &Value) -> bool {
    value.downcast_object_ref::<Tuple>().is_some()
}

/// `namespace()` holds what a template stores; its items are its attributes.
pub fn is_namespace(value: &Value) -> bool {
    value.as_object().is_some_and(|object| object.type_name().contains("Namespace"))
}

/// Deeper than any request's JSON may be.
const MAX_DEPTH: usize = 256;

fn write_repr(value: &Value, out: &mut String, depth: usize) -> Result<(), Error> {
    check_size(out)?;
    if depth > MAX_DEPTH {
        return Err(Error::new(ErrorKind::InvalidOperation, "a value nested too deeply"));
    }
    match value.kind() {
        ValueKind::String => write_quoted(value.as_str().unwrap_or_default(), out),
        ValueKind::Number => match f64::try_from(value.clone()) {
            Ok(float) if !value.is_integer() => out.push_str(&float_text(float)),
            _ => out.push_str(&value.to_string()),
        },
        ValueKind::Seq => {
            let tuple = is_tuple(value);
            out.push(if tuple { '(' } else { '[' });
            let mut count = 0;
            for item in value.try_iter().into_iter().flatten() {
                if count > 0 {
                    out.push_str(", ");
                }
                write_repr(&item, out, depth + 1)?;
                count += 1;
            }
            if tuple && count == 1 {
                out.push(',');
            }
            out.push(if tuple { ')' } else { ']' });
        }
        ValueKind::Map => {
            out.push('{');
            for (index, key) in value.try_iter().into_iter().flatten().enumerate() {
                if index > 0 {
                    out.push_str(", ");
                }
                write_repr(&key, out, depth + 1)?;
                out.push_str(": ");
                write_repr(&value.get_item(&key)?, out, depth + 1)?;
            }
            out.push('}');
        }
        ValueKind::Undefined => out.push_str("Undefined"),
        _ => out.push_str(&value.to_string()),
    }
    Ok(())
}

/// The shortest text that reads back as the number, in Python's spelling.
fn float_text(float: f64) -> String {
    if float.is_nan() {
        return "nan".into();
    }
    if float.is_infinite() {
        return if float > 0.0 { "inf".into() } else { "-inf".into() };
    }
    // Rust changes to the exponent where Python does, but writes e16 for e+16 and e-5 for e-05.
    let text = format!("{float:?}");
    let Some((digits, exponent)) = text.split_once('e') else { return text };
    let digits = digits.strip_suffix(".0").unwrap_or(digits);
    let exponent: i32 = exponent.parse().unwrap_or_default();
    format!("{digits}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs())
}

/// repr() of a string: single quotes, unless only those are inside.
fn write_quoted(text: &str, out: &mut String) {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    out.push(quote);
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c == quote => {
                out.push('\\');
                out.push(c);
            }
            c if is_printable(c) => out.push(c),
            c => {
                let code = c as u32;
                match code {
                    0..=0xff => write!(out, "\\x{code:02x}"),
                    0x100..=0xffff => write!(out, "\\u{code:04x}"),
                    _ => write!(out, "\\U{code:08x}"),
                }
                .expect("a string takes all");
            }
        }
    }
    out.push(quote);
}

/// What Python prints as it is: no control, format, private or unassigned character, and no separator but the space.
fn is_printable(c: char) -> bool {
    static HIDDEN: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"[\p{C}\p{Z}]").expect("a valid expression"));
    c == ' ' || ('!'..='~').contains(&c) || !HIDDEN.is_match(c.encode_utf8(&mut [0; 4]))
}

/// printf's and str.format's formatting. Widths are bounded, since the engine pads first and counts afterwards: at most
/// four digits, and none that come from an argument.
pub fn formatted(style: FormatStyle, pattern: &str, arguments: &[Value]) -> Result<Value, Error> {
    static UNBOUNDED: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"[0-9]{5}|%[^%A-Za-z]*\*|\{[^{}]*\{").expect("a valid expression"));
    let plain = pattern.replace("{{", "");
    if UNBOUNDED.is_match(if style == FormatStyle::Printf { pattern } else { &plain }) {
        return Err(Error::new(ErrorKind::InvalidOperation, "a format with a width above 9999 or from an argument"));
    }
    format(style, pattern, arguments).map(Value::from)
}

/// Methods of Python's types that the engine lacks.
pub fn method(state: &mut State, value: &Value, name: &str, arguments: &[Value]) -> Result<Value, Error> {
    let unknown = match value.as_str() {
        Some(text) => string_method(text, name, arguments),
        None => Err(Error::from(ErrorKind::UnknownMethod)),
    };
    match unknown {
        Err(error) if error.kind() == ErrorKind::UnknownMethod => {
            pycompat::unknown_method_callback(state, value, name, arguments)
        }
        known => known,
    }
}

fn string_method(text: &str, name: &str, arguments: &[Value]) -> Result<Value, Error> {
    match name {
        "strip" | "lstrip" | "rstrip" => {
            let (characters,): (Option<&str>,) = from_args(arguments)?;
            let dropped = |c: char| match characters {
                Some(characters) => characters.contains(c),
                None => is_space(c),
            };
            Ok(Value::from(match name {
                "strip" => text.trim_matches(dropped),
                "lstrip" => text.trim_start_matches(dropped),
                _ => text.trim_end_matches(dropped),
            }))
        }
        "format" => formatted(FormatStyle::StrFormat, text, arguments),
        "removeprefix" => {
            let (prefix,): (&str,) = from_args(arguments)?;
            Ok(Value::from(text.strip_prefix(prefix).unwrap_or(text)))
        }
        "removesuffix" => {
            let (suffix,): (&str,) = from_args(arguments)?;
            Ok(Value::from(text.strip_suffix(suffix).unwrap_or(text)))
        }
        "partition" | "rpartition" => {
            let (separator,): (&str,) = from_args(arguments)?;
            let found = if name == "partition" { text.split_once(separator) } else { text.rsplit_once(separator) };
            let parts = match (found, name) {
                (Some((before, after)), _) => [before, separator, after],
                (None, "partition") => [text, "", ""],
                (None, _) => ["", "", text],
            };
            Ok(Value::from(Tuple::from(parts.map(Value::from))))
        }
        "rsplit" => rsplit(text, arguments),
        "casefold" => {
            let () = from_args(arguments)?;
            Ok(Value::from(text.to_lowercase()))
        }
        _ => Err(Error::from(ErrorKind::UnknownMethod)),
    }
}

fn rsplit(text: &str, arguments: &[Value]) -> Result<Value, Error> {
    let (separator, most): (Option<&str>, Option<i64>) = from_args(arguments)?;
    let most = most.filter(|most| *most >= 0).map_or(usize::MAX, |most| most as usize);
    let mut parts: Vec<&str> = Vec::new();
    let mut rest = text;
    if separator.is_none() {
        rest = rest.trim_end_matches(is_space);
    }
    while parts.len() < most {
        let found = match separator {
            Some(separator) => rest.rsplit_once(separator),
            None => rest.rfind(is_space).map(|at| {
                let (before, after) = rest.split_at(at);
                (before, after.trim_start_matches(is_space))
            }),
        };
        let Some((before, after)) = found else { break };
        parts.push(after);
        rest = if separator.is_none() { before.trim_end_matches(is_space) } else { before };
    }
    if separator.is_some() || !rest.is_empty() {
        parts.push(rest);
    }
    Ok(parts.into_iter().rev().map(Value::from).collect())
}

/// What str.strip() drops: Unicode's white space, and the four information separators.
pub fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_print_quoted_inside_lists_only() {
        assert_eq!(text(&Value::from("it's")).unwrap(), "it's");
        assert_eq!(
            text(&Value::from(vec!["it's", "a\"'b", "\n\u{0}\u{a0}\u{301}\u{e000}\u{1f600}"])).unwrap(),
            "[\"it's\", 'a\"\\'b', '\\n\\x00\\xa0\u{301}\\ue000\u{1f600}']"
        );
    }

    #[test]
    fn floats_print_as_python_does() {
        for (float, expected) in
            [(1.0, "1.0"), (1e16, "1e+16"), (1.5e-7, "1.5e-07"), (1e-5, "1e-05"), (0.0001, "0.0001"), (1e22, "1e+22")]
        {
            assert_eq!(text(&Value::from(float)).unwrap(), expected);
        }
    }
}
