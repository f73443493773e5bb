//! The fields that ask for the form of a message.

use serde_json::{Value, json};

use super::tags;
use super::text::of_text;
use crate::error::ApiError;
use crate::fields::Fields;
use lapwing_engine::structured::Grammar;

/// Fields with an object that has a type, as OpenAI's `response_format` has.
const FORMATS: [&str; 4] =
    ["response_format", "text.format", "output_config.format", "output_format"];

/// What the types of a format may be.
const TYPES: &str = "text, json_object, json_schema, regex, grammar or structural_tag";

/// A constraint that a field asks for.
pub(super) struct Asked {
    /// The field.
    pub(super) field: String,
    pub(super) grammar: Grammar,
    /// Whether it holds for the message only, so that the model may call a function in its place.
    pub(super) is_of_message: bool,
}

/// The constraints of the fields, each with its field.
///
/// # Errors
/// When a field has the wrong form.
pub(super) fn take(fields: &mut Fields) -> Result<Vec<Asked>, ApiError> {
    let mut found = Vec::new();
    for name in FORMATS {
        if let Some(format) = fields.take::<Value>(name)? {
            let grammar = of_format(name, &format)?;
            let asked = |grammar| Asked { field: name.to_owned(), grammar, is_of_message: true };
            found.extend(grammar.map(asked));
        }
    }
    if fields.take::<bool>("grammar_lazy")? == Some(true) {
        let message = "grammar_lazy is not supported: a grammar holds from the first token on";
        return Err(ApiError::field("grammar_lazy", message));
    }
    let space = fields.take::<String>("guided_whitespace_pattern")?;
    let options = space.map(|space| json!({ "whitespace_pattern": space }));
    let own = ["json_schema", "", "regex", "", "grammar", ""];
    let guided = [
        "guided_json",
        "guided_json_object",
        "guided_regex",
        "guided_choice",
        "guided_grammar",
        "structural_tag",
    ];
    let mut add = |(field, grammar)| {
        found.push(Asked { field, grammar, is_of_message: false });
    };
    named(fields, own, None)?.into_iter().for_each(&mut add);
    named(fields, guided, options)?.into_iter().for_each(&mut add);
    if fields.peek("structured_outputs").is_some() {
        structured_outputs(fields)?.into_iter().for_each(&mut add);
    }
    Ok(found)
}

/// The constraints of vLLM's `structured_outputs`.
fn structured_outputs(fields: &mut Fields) -> Result<Vec<(String, Grammar)>, ApiError> {
    let outputs = fields.object("structured_outputs", "structured_outputs.")?;
    let found = of_outputs(outputs)?.into_iter();
    Ok(found.map(|(name, grammar)| (format!("structured_outputs.{name}"), grammar)).collect())
}

/// The constraints of the members of vLLM's `structured_outputs`, each with its name.
///
/// # Errors
/// When a member has the wrong form, or is unknown.
pub(super) fn of_outputs(mut outputs: Fields) -> Result<Vec<(String, Grammar)>, ApiError> {
    let space = outputs.take::<String>("whitespace_pattern")?;
    let has_no_space = outputs.take::<bool>("disable_any_whitespace")?.unwrap_or(false);
    let options = match (space, has_no_space) {
        (_, true) => Some(json!({ "whitespace_flexible": false })),
        (Some(space), false) => Some(json!({ "whitespace_pattern": space })),
        (None, false) => None,
    };
    let names = ["json", "json_object", "regex", "choice", "grammar", "structural_tag"];
    let found = named(&mut outputs, names, options)?;
    // The program's own notes; and objects are closed in any case.
    let notes =
        ["disable_fallback", "disable_additional_properties", "_backend", "_backend_was_auto"];
    for name in notes {
        outputs.take::<Value>(name)?;
    }
    match outputs.rest().first() {
        Some(name) => {
            let message = format!("{name} is not known; known are {}", names.join(", "));
            Err(ApiError::field(name, message))
        }
        None => Ok(found),
    }
}

/// The constraints of fields with the given names for JSON of a schema, any JSON object, a regular expression, a list of
/// texts, a grammar, and tags. `options` are those of white space.
fn named(
    fields: &mut Fields,
    [schema, object, regex, choice, grammar, tags]: [&str; 6],
    options: Option<Value>,
) -> Result<Vec<(String, Grammar)>, ApiError> {
    let with_options = |mut schema: Value| {
        if let (Value::Object(members), Some(options)) = (&mut schema, &options) {
            members.insert("x-guidance".to_owned(), options.clone());
        }
        Grammar::json_schema(schema)
    };
    let mut found = Vec::new();
    let mut add = |name: &str, grammar: Grammar| found.push((name.to_owned(), grammar));
    if let Some(value) = fields.take::<Value>(schema)? {
        add(schema, with_options(parsed(schema, value)?));
    }
    if fields.take::<bool>(object)? == Some(true) {
        add(object, with_options(json!({ "type": "object" })));
    }
    if let Some(pattern) = fields.take::<String>(regex)? {
        add(regex, Grammar::regex(pattern));
    }
    if let Some(texts) = fields.take::<Vec<String>>(choice)? {
        add(choice, Grammar::choice(texts));
    }
    if let Some(text) = fields.take::<String>(grammar)?.filter(|text| !text.is_empty()) {
        add(grammar, of_text(&text));
    }
    if let Some(value) = fields.take::<Value>(tags)? {
        add(tags, tags::read(tags, &parsed(tags, value)?)?);
    }
    Ok(found)
}

/// The grammar of a format that the field `name` asks for; `None` for plain text.
fn of_format(name: &str, format: &Value) -> Result<Option<Grammar>, ApiError> {
    let invalid = |message: String| ApiError::field(name, message);
    let first = |pointers: &[&str]| pointers.iter().find_map(|pointer| format.pointer(pointer));
    let schema = || first(&["/json_schema/schema", "/schema", "/value"]).filter(|it| !it.is_null());
    let text = |kind: &str| {
        let found = first(&[&format!("/{kind}"), "/pattern", "/value", "/definition"]);
        found.and_then(Value::as_str).ok_or_else(|| invalid(format!("{name} has no {kind}")))
    };
    let grammar = match format.get("type").and_then(Value::as_str) {
        Some("text") => return Ok(None),
        Some("json_object") => match schema() {
            Some(schema) => Grammar::json_schema(parsed(name, schema.clone())?),
            None => Grammar::json_object(),
        },
        Some("json_schema" | "json") => match schema() {
            Some(schema) => Grammar::json_schema(parsed(name, schema.clone())?),
            None => return Err(invalid(format!("{name} has no json_schema.schema"))),
        },
        Some("regex") => Grammar::regex(text("regex")?),
        Some("grammar") => of_text(text("grammar")?),
        Some("structural_tag") => tags::read(name, format)?,
        Some(other) => {
            return Err(invalid(format!("{name}.type is '{other}', but must be {TYPES}")));
        }
        None => return Err(invalid(format!("{name}.type must be {TYPES}"))),
    };
    Ok(Some(grammar))
}

/// A schema, which some clients send as text.
fn parsed(name: &str, schema: Value) -> Result<Value, ApiError> {
    match schema {
        Value::String(text) => serde_json::from_str(&text)
            .map_err(|error| ApiError::field(name, format!("{name} is not JSON: {error}"))),
        schema => Ok(schema),
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
