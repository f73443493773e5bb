//! The form that a request asks for: JSON, a grammar, or a call of a function.

use serde_json::{Value, json};

use super::error::ApiError;
use super::fields::Fields;
use super::tools::{Style, Tools};
use crate::request::Request;
use crate::structured::Grammar;

/// Sets the form of the answer as the fields say: `response_format` and its relatives of vLLM's and llama.cpp's
/// servers, or a call that `tools` requires.
///
/// # Errors
/// When a field has the wrong form, or two of them contradict each other.
pub(crate) fn apply(
    fields: &mut Fields,
    tools: Option<&Tools>,
    mut request: Request,
) -> Result<Request, ApiError> {
    if let Some(tokens) = fields.take::<usize>("min_tokens")? {
        request = request.min_tokens(tokens);
    }
    let mut found: Vec<(&str, Grammar)> = Vec::new();
    if let Some(format) = fields.take::<Value>("response_format")? {
        found.extend(of_format(&format)?.map(|grammar| ("response_format", grammar)));
    }
    if let Some(schema) = fields.take_any::<Value>(&["json_schema", "guided_json"])? {
        found.push(("json_schema", Grammar::json_schema(parsed("json_schema", schema)?)));
    }
    if let Some(text) = fields.take_any::<String>(&["grammar", "guided_grammar"])? {
        found.push(("grammar", of_text(&text)));
    }
    if let Some(regex) = fields.take_any::<String>(&["regex", "guided_regex"])? {
        found.push(("regex", Grammar::regex(regex)));
    }
    if let Some(choices) = fields.take::<Vec<String>>("guided_choice")? {
        found.push(("guided_choice", Grammar::choice(choices)));
    }
    if let Some(schema) =
        tools.and_then(|tools| tools.required_schema().map(|schema| (tools, schema)))
    {
        found.push(("tool_choice", of_call(schema.0.style, &schema.1)));
    }
    match found.len() {
        0 => Ok(request),
        1 => Ok(found.into_iter().fold(request, |request, (_, grammar)| request.grammar(grammar))),
        _ => {
            let names: Vec<&str> = found.iter().map(|(name, _)| *name).collect();
            let message = format!("{} exclude each other", names.join(" and "));
            Err(ApiError::field(names[0], message))
        }
    }
}

/// The grammar of a `response_format`; `None` for plain text.
fn of_format(format: &Value) -> Result<Option<Grammar>, ApiError> {
    let schema = || format.pointer("/json_schema/schema").or_else(|| format.get("schema")).cloned();
    match format.get("type").and_then(Value::as_str) {
        Some("text") => Ok(None),
        Some("json_object") => match schema() {
            Some(schema) => Ok(Some(Grammar::json_schema(schema))),
            None => Ok(Some(Grammar::json_object())),
        },
        Some("json_schema") => match schema() {
            Some(schema) => Ok(Some(Grammar::json_schema(schema))),
            None => {
                Err(ApiError::field("response_format", "response_format has no json_schema.schema"))
            }
        },
        _ => Err(ApiError::field(
            "response_format",
            "response_format.type must be text, json_object or json_schema",
        )),
    }
}

/// A schema, which some clients send as text.
fn parsed(name: &str, schema: Value) -> Result<Value, ApiError> {
    match schema {
        Value::String(text) => serde_json::from_str(&text)
            .map_err(|error| ApiError::field(name, format!("{name} is not JSON: {error}"))),
        schema => Ok(schema),
    }
}

/// A grammar in llama.cpp's form, whose rules have `::=`, or in Lark's.
fn of_text(text: &str) -> Grammar {
    match text.contains("::=") {
        true => Grammar::gbnf(text),
        false => Grammar::lark(text),
    }
}

/// The grammar of a call, as a model writes it.
fn of_call(style: Style, schema: &Value) -> Grammar {
    let mut schema = schema.clone();
    // Some models would write white space for ever.
    schema["x-guidance"] = json!({ "whitespace_pattern": "[ \\n]{1,8}" });
    match style {
        Style::Bare => Grammar::json_schema(schema),
        Style::Tagged => Grammar::lark(format!(
            "start: \"<tool_call>\\n\" call \"\\n</tool_call>\"\ncall: %json {}\n",
            schema
        )),
    }
}

/// The grammar of Ollama's `format`: `json`, or a schema; `None` if it is empty.
///
/// # Errors
/// When it is another text.
pub(crate) fn of_ollama(format: Value) -> Result<Option<Grammar>, ApiError> {
    match format {
        Value::String(text) if text.is_empty() => Ok(None),
        Value::String(text) if text == "json" => Ok(Some(Grammar::json_object())),
        schema @ Value::Object(_) => Ok(Some(Grammar::json_schema(schema))),
        other => Err(ApiError::field(
            "format",
            format!("format is {other}, but must be \"json\" or a JSON schema"),
        )),
    }
}
