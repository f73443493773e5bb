//! The template engine, configured to behave like Python's Jinja.

use std::time::SystemTime;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Kwargs, ValueKind};
use minijinja::{Environment, Error, ErrorKind, Output, State, Value};
use serde::Serialize;
use serde_json::ser::{PrettyFormatter, Serializer};

use super::error::{ChatError, Refusal};
use super::filters;
use super::meter::{Namespaces, metered};

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
    environment.add_filter("tojson", to_json);
    environment.add_test("iterable", |value: &Value| !value.is_none() && value.try_iter().is_ok());
    Ok(environment)
}

/// `strftime_now(format)` for a given time.
pub(super) fn date_function(now: SystemTime) -> Value {
    Value::from_function(move |format: String| -> Result<String, Error> {
        filters::check_date_format(&format)?;
        let invalid = |error: jiff::Error| {
            Error::new(ErrorKind::InvalidOperation, "invalid date or date format")
                .with_source(error)
        };
        let now =
            jiff::Timestamp::try_from(now).map_err(invalid)?.to_zoned(jiff::tz::TimeZone::UTC);
        jiff::fmt::strtime::format(format, &now).map_err(invalid)
    })
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

/// Writes booleans and `None` as Python does.
fn write_value(out: &mut Output, state: &mut State, value: &Value) -> Result<(), Error> {
    metered(state, |meter| {
        let size = meter.measure(value, Namespaces::Read)?;
        meter.emit(size.bytes + size.items)
    })?;
    match (value.kind(), value.is_true()) {
        (ValueKind::Bool, true) => out.write_str("True").map_err(Error::from),
        (ValueKind::Bool, false) => out.write_str("False").map_err(Error::from),
        (ValueKind::None, _) => out.write_str("None").map_err(Error::from),
        _ => minijinja::escape_formatter(out, state, value),
    }
}

/// The filter `tojson(indent=…)`, with the spacing of Python's `json.dumps` and without its
/// escapes.
fn to_json(
    state: &State,
    value: &Value,
    indent: Option<usize>,
    options: Kwargs,
) -> Result<String, Error> {
    let indent = metered(state, |meter| filters::json_indent(meter, value, (indent, &options)))?;
    let mut json = Vec::new();
    let written = match indent {
        Some(indent) => {
            let indent = " ".repeat(indent);
            let formatter = PrettyFormatter::with_indent(indent.as_bytes());
            value.serialize(&mut Serializer::with_formatter(&mut json, formatter))
        }
        None => value.serialize(&mut Serializer::with_formatter(&mut json, Spaced)),
    };
    let invalid = |error: String| {
        Error::new(
            ErrorKind::InvalidOperation,
            format!("a value cannot be written as JSON: {error}"),
        )
    };
    written.map_err(|error| invalid(error.to_string()))?;
    String::from_utf8(json).map_err(|error| invalid(error.to_string()))
}

/// Formats JSON on one line, with a space after each comma and colon.
struct Spaced;

impl serde_json::ser::Formatter for Spaced {
    fn begin_array_value<W: ?Sized + std::io::Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> std::io::Result<()> {
        if first { Ok(()) } else { writer.write_all(b", ") }
    }

    fn begin_object_key<W: ?Sized + std::io::Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> std::io::Result<()> {
        if first { Ok(()) } else { writer.write_all(b", ") }
    }

    fn begin_object_value<W: ?Sized + std::io::Write>(
        &mut self,
        writer: &mut W,
    ) -> std::io::Result<()> {
        writer.write_all(b": ")
    }
}
