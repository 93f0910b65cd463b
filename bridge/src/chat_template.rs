// Chat templates: parsed once, rendered as Hugging Face's Jinja environment renders them.

use std::collections::BTreeMap;
use std::sync::Arc;

use minijinja::machinery::{CompiledTemplate, Instruction, Instructions, TemplateConfig, eval, make_string_output};
use minijinja::syntax::SyntaxConfig;
use minijinja::value::Value;
use minijinja::{AutoEscape, Environment};

use crate::environment::{self, Refusal};
use crate::error::{Error, Result};
use crate::source;

/// The name that a template has in messages about it.
const NAME: &str = "chat template";

/// Work that any rendering may do, and what each byte of its input adds. One unit is an instruction or 64 bytes made, so
/// that memory is bounded by it too.
const BASE_FUEL: u64 = 8_000_000;
const FUEL_PER_INPUT_BYTE: u64 = 1;

pub struct ChatTemplate {
    // The compiled form borrows `source`, which it must not outlive: fields are dropped in this order.
    compiled: CompiledTemplate<'static>,
    environment: Environment<'static>,
    source: Arc<str>,
}

impl ChatTemplate {
    pub fn parse(source: &str) -> Result<Self> {
        let source: Arc<str> = source::prepare(source).into();
        // SAFETY: the text is behind an Arc that lives in the same object, is never changed, and is dropped last.
        let text: &'static str = unsafe { &*std::ptr::from_ref::<str>(&source) };
        let mut syntax = SyntaxConfig::builder();
        syntax.trim_blocks(true).lstrip_blocks(true);
        let config = TemplateConfig {
            syntax_config: syntax.build().map_err(|error| describe(&error))?,
            default_auto_escape: Arc::new(|_| AutoEscape::None),
        };
        let mut compiled = CompiledTemplate::new(NAME, text, &config).map_err(|error| describe(&error))?;
        adapt(&mut compiled.instructions);
        compiled.blocks.values_mut().for_each(adapt);
        Ok(Self { compiled, environment: environment::make(), source })
    }

    /// The source, prepared for the parser.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Renders over `variables`; `input_bytes` is how large they are. `now_s`: what `strftime_now` sees, as seconds of
    /// local time since 1970. `sentinel` is a character that JSON escapes leave alone.
    pub fn render(
        &self,
        variables: BTreeMap<String, Value>,
        input_bytes: usize,
        now_s: i64,
        sentinel: Option<char>,
    ) -> Result<String> {
        let mut environment = self.environment.clone();
        let input_fuel = (input_bytes as u64).saturating_mul(FUEL_PER_INPUT_BYTE);
        environment.set_fuel(Some(BASE_FUEL.saturating_add(input_fuel)));
        environment::add_moment(&mut environment, now_s, sentinel);
        let mut text = String::new();
        let mut output = make_string_output(&mut text);
        let CompiledTemplate { instructions, blocks, .. } = &self.compiled;
        eval(&environment, instructions, Value::from(variables), blocks, &mut output, AutoEscape::None)
            .map_err(|error| describe(&error))?;
        Ok(text)
    }
}

/// Gives operators and attributes their Python meaning where the engine's own differs: each becomes a filter of
/// `environment`, which takes and gives as many values.
fn adapt(instructions: &mut Instructions<'static>) {
    const NOT_CACHED: u8 = !0;
    let mut index = 0;
    let mut key_is_method = false; // the last instruction loads the name of a dict's method
    while let Some(instruction) = instructions.get_mut(index) {
        let replaced = match *instruction {
            Instruction::Rem => Some(Instruction::ApplyFilter(environment::REMAINDER, Some(2), NOT_CACHED)),
            Instruction::StringConcat => {
                Some(Instruction::ApplyFilter(environment::CONCATENATION, Some(2), NOT_CACHED))
            }
            Instruction::GetItem if key_is_method => {
                Some(Instruction::ApplyFilter(environment::ITEM, Some(2), NOT_CACHED))
            }
            Instruction::GetAttr(name) => {
                environment::dict_attribute(name).map(|filter| Instruction::ApplyFilter(filter, Some(1), NOT_CACHED))
            }
            _ => None,
        };
        key_is_method = match instruction {
            Instruction::LoadConst(key) => key.as_str().and_then(environment::dict_attribute).is_some(),
            _ => false,
        };
        if let Some(replaced) = replaced {
            *instruction = replaced;
        }
        index += 1;
    }
}

/// What went wrong, without any of the text that was rendered: a template's own refusal is its message and no more.
fn describe(error: &minijinja::Error) -> Error {
    use minijinja::ErrorKind::*;
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(seen) = cause {
        if let Some(refusal) = seen.downcast_ref::<Refusal>() {
            return Error::Invalid(refusal.0.clone());
        }
        cause = seen.source();
    }
    let mut message = format!("{NAME}: {}", error.kind());
    let names_no_values = matches!(
        error.kind(),
        SyntaxError
            | UnknownFilter
            | UnknownTest
            | UnknownFunction
            | UnknownMethod
            | MissingArgument
            | TooManyArguments
    );
    if let (true, Some(detail)) = (names_no_values, error.detail()) {
        message += &format!(": {detail}");
    }
    if let Some(line) = error.line() {
        message += &format!(" (line {line})");
    }
    Error::Invalid(message)
}
