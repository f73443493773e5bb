//! Grammars of several parts: sequences, alternatives, calls of functions, and text with tags.

use serde_json::{Value, json};

use super::schema::Schemas;
use super::{Grammar, Kind};

/// A function that an answer may call.
#[derive(Clone, Debug, PartialEq)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// JSON schema of its arguments, an object. Without one, it has none.
    pub parameters: Option<Value>,
}

/// How an answer calls functions: a JSON object with a name and the arguments.
#[derive(Clone, Debug, PartialEq)]
pub struct CallForm {
    /// The functions; a call names one of them.
    pub functions: Vec<Function>,
    /// The property that holds the arguments, such as `arguments`.
    pub arguments: String,
}

/// A text that begins a part with a grammar of its own.
#[derive(Clone, Debug, PartialEq)]
pub struct Tag {
    /// The beginning of [`begin`](Tag::begin) from which on the grammar holds.
    pub trigger: String,
    /// The text before the part.
    pub begin: String,
    /// The part.
    pub inside: Grammar,
    /// The text after the part.
    pub end: String,
}

impl Grammar {
    /// A call of a function as a JSON object. Each schema of parameters is a document of its own: references in it count from
    /// its root.
    pub fn calls(form: CallForm) -> Grammar {
        Kind::Calls(form).into()
    }

    /// Texts of several grammars, one after the other.
    pub fn sequence(parts: impl IntoIterator<Item = Grammar>) -> Grammar {
        Kind::Sequence(parts.into_iter().collect()).into()
    }

    /// A text of one of several grammars.
    pub fn one_of(alternatives: impl IntoIterator<Item = Grammar>) -> Grammar {
        Kind::OneOf(alternatives.into_iter().collect()).into()
    }

    /// Any text, in which the trigger of a tag begins one of the tags with that trigger.
    pub fn tagged(tags: impl IntoIterator<Item = Tag>) -> Grammar {
        Kind::Tagged(tags.into_iter().collect()).into()
    }
}

impl CallForm {
    /// The schema of a call.
    ///
    /// # Errors
    /// When a schema of parameters cannot be followed.
    pub(super) fn schema(&self, schemas: &mut Schemas) -> Result<Value, String> {
        let mut calls = Vec::new();
        for function in &self.functions {
            let (name, parameters) = (&function.name, function.schema(schemas)?);
            calls.push(json!({
                "type": "object",
                "properties": { "name": { "const": name }, &self.arguments: parameters },
                "required": ["name", self.arguments],
                "additionalProperties": false,
            }));
        }
        let schema = match calls.len() {
            1 => calls.remove(0),
            _ => json!({ "anyOf": calls }),
        };
        Ok(schemas.with_definitions(schema))
    }
}

/// A schema of parameters, which are an object. A function without one has no parameters.
pub(super) fn of_object(parameters: Option<&Value>) -> Value {
    let mut schema = match parameters {
        Some(Value::Object(members)) if !members.is_empty() => members.clone(),
        None | Some(Value::Null | Value::Object(_)) => {
            return json!({ "type": "object", "properties": {} });
        }
        Some(other) => return other.clone(),
    };
    schema.entry("type").or_insert_with(|| "object".into());
    schema.into()
}
