//! Pieces of the grammars of calls: texts that may be control tokens of the vocabulary, and values of arguments.

use serde_json::{Map, Value, json};

use super::parts::{Function, of_object};
use super::schema::Schemas;
use super::{Grammar, Kind};

/// A piece of the grammar of a call.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Piece {
    /// A text, whose control tokens are one token each.
    Mark(String),
    /// Any text up to such a text, which ends it.
    Until(String),
    /// Any text, in which `begin` begins a part that `end` ends.
    Free { begin: String, inside: Box<Grammar>, end: String },
    /// A text of the grammar, or nothing.
    Optional(Box<Grammar>),
    /// Any number of texts of the grammar.
    Repeated(Box<Grammar>),
    /// The arguments of a function, as a JSON object.
    Arguments(Function),
    /// A call as a JSON object.
    Object(ObjectForm),
    /// JSON that is valid for a schema, which the label names.
    Value { label: String, schema: Value },
}

/// A call of a function as a JSON object.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ObjectForm {
    pub(crate) function: Function,
    /// The member with the name; without it the object has one member, named as the function.
    pub(crate) name: Option<&'static str>,
    /// The member with the arguments.
    pub(crate) arguments: &'static str,
    /// The member with the number of the call.
    pub(crate) number: Option<&'static str>,
}

impl Grammar {
    /// A text. Control tokens of the vocabulary in it are one token each, and not their characters.
    pub(crate) fn mark(text: impl Into<String>) -> Grammar {
        Kind::Piece(Piece::Mark(text.into())).into()
    }

    /// Any text up to the first of this [mark](Grammar::mark), which ends it.
    pub(crate) fn until(mark: impl Into<String>) -> Grammar {
        Kind::Piece(Piece::Until(mark.into())).into()
    }

    /// Any text, in which the [mark](Grammar::mark) `begin` begins a part that the mark `end` ends.
    pub(crate) fn free(begin: &str, inside: Grammar, end: &str) -> Grammar {
        let (begin, inside, end) = (begin.to_owned(), Box::new(inside), end.to_owned());
        Kind::Piece(Piece::Free { begin, inside, end }).into()
    }

    /// A text of the grammar, or nothing.
    pub(crate) fn optional(grammar: Grammar) -> Grammar {
        Kind::Piece(Piece::Optional(Box::new(grammar))).into()
    }

    /// Any number of texts of the grammar.
    pub(crate) fn repeated(grammar: Grammar) -> Grammar {
        Kind::Piece(Piece::Repeated(Box::new(grammar))).into()
    }

    /// The arguments of a function, as a JSON object.
    pub(crate) fn arguments(function: Function) -> Grammar {
        Kind::Piece(Piece::Arguments(function)).into()
    }

    /// A call as a JSON object.
    pub(crate) fn object(form: ObjectForm) -> Grammar {
        Kind::Piece(Piece::Object(form)).into()
    }

    /// JSON that is valid for a schema, which the label names in errors and among keywords without effect.
    pub(crate) fn value(label: String, schema: Value) -> Grammar {
        Kind::Piece(Piece::Value { label, schema }).into()
    }
}

impl Piece {
    /// Its schemas as callers wrote them.
    pub(super) fn schemas(&self) -> Option<&Value> {
        match self {
            Piece::Arguments(function) => function.parameters.as_ref(),
            Piece::Object(form) => form.function.parameters.as_ref(),
            Piece::Value { schema, .. } => Some(schema),
            Piece::Mark(_)
            | Piece::Until(_)
            | Piece::Free { .. }
            | Piece::Optional(_)
            | Piece::Repeated(_) => None,
        }
    }

    /// Its schema, if it is JSON.
    ///
    /// # Errors
    /// When a schema of a caller cannot be followed.
    pub(super) fn schema(&self, schemas: &mut Schemas) -> Result<Option<Value>, String> {
        let schema = match self {
            Piece::Arguments(function) => function.schema(schemas)?,
            Piece::Object(form) => form.schema(schemas)?,
            Piece::Value { label, schema } => match schemas.add(label, schema)? {
                Value::Bool(true) => json!({}),
                written => written,
            },
            Piece::Mark(_)
            | Piece::Until(_)
            | Piece::Free { .. }
            | Piece::Optional(_)
            | Piece::Repeated(_) => return Ok(None),
        };
        Ok(Some(schemas.with_definitions(schema)))
    }
}

impl ObjectForm {
    /// The schema of the object, without the definitions that it refers to.
    fn schema(&self, schemas: &mut Schemas) -> Result<Value, String> {
        let arguments = self.function.schema(schemas)?;
        let mut members = Map::new();
        if let Some(number) = self.number {
            members.insert(number.to_owned(), json!({ "const": "0" }));
        }
        match self.name {
            Some(name) => {
                members.insert(name.to_owned(), json!({ "const": self.function.name }));
                members.insert(self.arguments.to_owned(), arguments);
            }
            None => drop(members.insert(self.function.name.clone(), arguments)),
        }
        let required: Vec<&String> = members.keys().collect();
        let required = json!(required);
        Ok(json!({
            "type": "object",
            "properties": members,
            "required": required,
            "additionalProperties": false,
        }))
    }
}

impl Function {
    /// The schema of its arguments, without the definitions that it refers to.
    pub(super) fn schema(&self, schemas: &mut Schemas) -> Result<Value, String> {
        let label = format!("tools.{}.parameters", self.name);
        schemas.add(&label, &of_object(self.parameters.as_ref()))
    }
}
