// The environment that chat templates are rendered in: the engine's own, with what Python's Jinja does otherwise.

use std::fmt;
use std::sync::Arc;

use minijinja::formatting::FormatStyle;
use minijinja::value::{Kwargs, Object, ObjectRepr, Value, ValueKind, from_args};
use minijinja::{Environment, Error, ErrorKind, Output, State};

use crate::json_text::{self, JsonStyle};
use crate::python;
use crate::strftime::strftime;

/// A template's own refusal, by `raise_exception`: the message is for whoever sent the messages.
#[derive(Debug)]
pub struct Refusal(pub String);

impl fmt::Display for Refusal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for Refusal {}

/// The filter that `%` becomes.
pub const REMAINDER: &str = "%";
/// The filter that `~` becomes.
pub const CONCATENATION: &str = "~";
/// The filter that a subscript becomes when dicts have a method of its name.
pub const ITEM: &str = "[]";

/// The filter that an attribute becomes when dicts have a method of its name.
pub fn dict_attribute(name: &str) -> Option<&'static str> {
    DICT_METHODS.iter().find(|(method, _)| *method == name).map(|(_, filter)| *filter)
}

const DICT_METHODS: &[(&str, &str)] = &[("get", ".get"), ("items", ".items"), ("keys", ".keys"), ("values", ".values")];

pub fn make() -> Environment<'static> {
    let mut environment = Environment::new();
    environment.set_unknown_method_callback(python::method);
    environment.set_formatter(write_value);
    environment.add_filter("escape", escape);
    environment.add_filter("e", escape);
    environment.add_filter("forceescape", force_escape);
    environment.add_filter("string", to_string);
    environment.add_filter("join", join);
    environment.add_filter(REMAINDER, remainder);
    environment.add_filter(CONCATENATION, concatenation);
    environment.add_filter(ITEM, item);
    for (method, filter) in DICT_METHODS {
        environment.add_filter(*filter, move |state: &mut State, value: &Value| attribute(state, value, method));
    }
    environment.add_function("raise_exception", raise_exception);
    environment
}

/// What differs from one rendering to the next.
pub fn add_moment(environment: &mut Environment<'static>, now_s: i64, sentinel: Option<char>) {
    environment.add_function("strftime_now", move |pattern: &str| strftime(pattern, now_s));
    environment.add_filter("tojson", move |value: &Value, options: Kwargs| to_json(value, &options, sentinel));
}

/// Prints as Python's str() does.
fn write_value(out: &mut Output, _: &mut State, value: &Value) -> Result<(), Error> {
    out.write_str(&python::text(value)?).map_err(Error::from)
}

fn to_string(value: &Value) -> Result<String, Error> {
    python::text(value)
}

fn escape(value: &Value) -> Result<Value, Error> {
    if value.is_safe() { Ok(value.clone()) } else { force_escape(value) }
}

fn force_escape(value: &Value) -> Result<Value, Error> {
    let mut out = String::new();
    for c in python::text(value)?.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&#34;"),
            '\'' => out.push_str("&#39;"),
            _ => out.push(c),
        }
    }
    Ok(Value::from_safe_string(out))
}

fn join(state: &mut State, value: &Value, separator: Option<Value>, options: Kwargs) -> Result<Value, Error> {
    let separator = separator.or(options.get("d")?).map_or_else(|| Ok(String::new()), |value| python::text(&value))?;
    let attribute: Option<Value> = options.get("attribute")?;
    options.assert_all_used()?;
    let items = match attribute {
        Some(name) => {
            let named = Kwargs::from_iter([("attribute", name)]);
            state.apply_filter("map", &[value.clone(), Value::from(named)])?
        }
        None => value.clone(),
    };
    let mut out = String::new();
    for (index, item) in items.try_iter()?.enumerate() {
        let text = python::text(&item)?;
        state.consume_fuel((text.len() + separator.len()) as u64 / 64)?;
        if index > 0 {
            out.push_str(&separator);
        }
        out.push_str(&text);
    }
    Ok(Value::from(out))
}

fn concatenation(left: &Value, right: &Value) -> Result<String, Error> {
    Ok(python::text(left)? + &python::text(right)?)
}

/// `%`: of a string, printf's; of numbers, Python's, which has the divisor's sign.
fn remainder(left: &Value, right: &Value) -> Result<Value, Error> {
    if let Some(pattern) = left.as_str() {
        let arguments = match right.kind() {
            ValueKind::Seq if python::is_tuple(right) => right.try_iter()?.collect(),
            _ => vec![right.clone()],
        };
        return python::formatted(FormatStyle::Printf, pattern, &arguments);
    }
    let unsupported = || Error::new(ErrorKind::InvalidOperation, "% of what are no numbers");
    if let (true, true) = (left.is_integer(), right.is_integer()) {
        let (a, b) = (i128::try_from(left.clone())?, i128::try_from(right.clone())?);
        let remainder = a.checked_rem(b).ok_or_else(unsupported)?;
        let wrong_sign = remainder != 0 && (remainder < 0) != (b < 0);
        return Ok(Value::from(if wrong_sign { remainder + b } else { remainder }));
    }
    let number = |value: &Value| f64::try_from(value.clone()).map_err(|_| unsupported());
    let (a, b) = (number(left)?, number(right)?);
    if b == 0.0 {
        return Err(unsupported());
    }
    let remainder = a % b;
    let wrong_sign = remainder != 0.0 && (remainder < 0.0) != (b < 0.0);
    Ok(Value::from(if wrong_sign { remainder + b } else { remainder }))
}

/// A dict's method, not called yet: Jinja looks an attribute up before an item, so that the item of a method's name is
/// reached by subscript only.
#[derive(Debug)]
struct BoundMethod {
    value: Value,
    name: &'static str,
}

impl Object for BoundMethod {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn call(self: &Arc<Self>, state: &mut State, arguments: &[Value]) -> Result<Value, Error> {
        self.value.call_method(state, self.name, arguments)
    }
}

fn attribute(_: &mut State, value: &Value, name: &'static str) -> Result<Value, Error> {
    if value.kind() == ValueKind::Map && !python::is_namespace(value) {
        return Ok(Value::from_object(BoundMethod { value: value.clone(), name }));
    }
    value.get_attr(name)
}

/// A subscript finds an item first, and a method where there is none.
fn item(value: &Value, key: &Value) -> Result<Value, Error> {
    let found = value.get_item(key)?;
    let method = key.as_str().and_then(|key| DICT_METHODS.iter().find(|(method, _)| *method == key));
    match method {
        Some((name, _)) if found.is_undefined() && value.kind() == ValueKind::Map => {
            Ok(Value::from_object(BoundMethod { value: value.clone(), name: *name }))
        }
        _ => Ok(found),
    }
}

fn raise_exception(message: &Value) -> Result<Value, Error> {
    let refusal = Refusal(python::text(message)?);
    Err(Error::new(ErrorKind::InvalidOperation, "the template refused").with_source(refusal))
}

fn to_json(value: &Value, options: &Kwargs, sentinel: Option<char>) -> Result<String, Error> {
    let mut style = JsonStyle {
        ensure_ascii: false,
        sort_keys: false,
        indent: None,
        item: ", ".into(),
        key: ": ".into(),
        sentinel,
    };
    style.ensure_ascii = options.get::<Option<bool>>("ensure_ascii")?.unwrap_or(false);
    style.sort_keys = options.get::<Option<bool>>("sort_keys")?.unwrap_or(false);
    let indent: Option<Value> = options.get("indent")?;
    if let Some(indent) = indent.filter(|value| !value.is_none()) {
        style.indent = Some(match indent.as_str() {
            Some(text) => text.to_string(),
            None => " ".repeat(i64::try_from(indent)?.clamp(0, 64) as usize),
        });
        style.item = ",".into();
    }
    let separators: Option<Value> = options.get("separators")?;
    if let Some(separators) = separators.filter(|value| !value.is_none()) {
        let (item, key): (String, String) = pair(&separators)?;
        (style.item, style.key) = (item, key);
    }
    options.assert_all_used()?;
    json_text::write(value, &style)
}

fn pair(value: &Value) -> Result<(String, String), Error> {
    let parts: Vec<Value> = value.try_iter()?.collect();
    from_args(&parts)
}
