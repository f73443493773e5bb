//! The template engine, configured to behave like Python's Jinja.

use minijinja::syntax::SyntaxConfig;
use minijinja::{Environment, Error, ErrorKind, Output, State, Value};

use super::error::{ChatError, Refusal};
use super::filters;
use super::meter::metered;
use super::python::repr;

/// Most characters of a rejection's message.
const MESSAGE_CHARS_MAX: usize = 1000;

/// Deepest recursion of the template engine, of which a call of a macro takes four levels.
const RECURSION_MAX: usize = 200;

/// The syntax of Python's templates as chat templates are compiled.
pub(super) fn syntax() -> Result<SyntaxConfig, ChatError> {
    SyntaxConfig::builder()
        .trim_blocks(true)
        .lstrip_blocks(true)
        .build()
        .map_err(ChatError::invalid)
}

/// An environment without templates, with Python's behaviour.
pub(super) fn like_python() -> Result<Environment<'static>, ChatError> {
    let mut environment = Environment::empty();
    environment.set_syntax(syntax()?);
    environment.set_recursion_limit(RECURSION_MAX);
    environment.set_formatter(write_value);
    filters::add_all(&mut environment);
    environment.add_function("raise_exception", |message: String| -> Result<Value, Error> {
        let message: String = message.chars().take(MESSAGE_CHARS_MAX).collect();
        Err(Error::new(ErrorKind::InvalidOperation, message.clone()).with_source(Refusal(message)))
    });
    Ok(environment)
}

/// Turns the tags around the model's own text, which only training uses, into blocks without
/// effect: `{% generation %}` … `{% endgeneration %}`.
pub(super) fn without_training_marks(source: &str) -> String {
    let mut rest = source;
    let mut template = String::with_capacity(source.len());
    while let Some((before, tag)) = rest.split_once("{%") {
        let Some((tag, after)) = tag.split_once("%}") else {
            break;
        };
        template.push_str(before);
        template.push_str("{%");
        match tag.trim_matches(|char: char| char.is_whitespace() || matches!(char, '-' | '+')) {
            mark @ "generation" => template.push_str(&tag.replace(mark, "if true")),
            mark @ "endgeneration" => template.push_str(&tag.replace(mark, "endif")),
            _ => template.push_str(tag),
        }
        template.push_str("%}");
        rest = after;
    }
    template.push_str(rest);
    template
}

/// Writes values as Python does.
fn write_value(out: &mut Output, state: &mut State, value: &Value) -> Result<(), Error> {
    metered(state, |meter| {
        let size = meter.measure_read(value)?;
        meter.emit(size.bytes + size.items)
    })?;
    match value.as_str() {
        Some(text) => out.write_str(text).map_err(Error::from),
        None => out.write_str(&repr::text(value)).map_err(Error::from),
    }
}
