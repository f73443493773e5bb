//! JSON schemas in the form that the library compiles: every reference leads to a numbered definition, objects are
//! closed, and keywords that cannot be followed are left out and named.
//!
//! Documents are the schemas of callers. Several of them, such as the parameters of several functions, become parts of
//! one schema: each has its own root, so that equal names of definitions do not meet.

mod closing;
mod document;
mod exclusive;
mod keywords;
mod values;
mod write;

use serde_json::{Map, Value};

use document::Document;
use write::Writer;

/// Most schemas, with their definitions, that a grammar may have.
const SCHEMAS_MAX: usize = 50_000;
/// Most keywords without effect that are named.
const NAMED_MAX: usize = 32;
/// Most characters of the name of a keyword without effect.
const NAME_CHARS_MAX: usize = 200;

/// Schemas that are parts of one grammar.
#[derive(Debug, Default)]
pub(super) struct Schemas {
    /// Definitions of all documents, by number.
    definitions: Map<String, Value>,
    /// Number of the next definition.
    next: usize,
    /// Keywords that have no effect, as pointers.
    ignored: Vec<String>,
    schemas: usize,
}

impl Schemas {
    /// Adds a document, which `label` names in errors and in pointers. Returns its root, whose references need
    /// [`with_definitions`](Schemas::with_definitions) at the root of the whole schema.
    ///
    /// # Errors
    /// When it is no schema, has a value that cannot be followed, or is too large.
    pub(super) fn add(&mut self, label: &str, schema: &Value) -> Result<Value, String> {
        let document = Document::new(schema);
        Writer::new(self, &document).document(label)
    }

    /// `schema` with the definitions that its parts refer to.
    pub(super) fn with_definitions(&self, mut schema: Value) -> Value {
        if let (Value::Object(members), false) = (&mut schema, self.definitions.is_empty()) {
            members.insert("$defs".to_owned(), Value::Object(self.definitions.clone()));
        }
        schema
    }

    /// Keywords that have no effect: pointers that begin with the label of their document.
    pub(super) fn into_ignored(self) -> Vec<String> {
        self.ignored
    }

    fn ignore(&mut self, pointer: String) {
        let pointer: String = pointer.chars().take(NAME_CHARS_MAX).collect();
        if self.ignored.len() < NAMED_MAX && !self.ignored.contains(&pointer) {
            self.ignored.push(pointer);
        }
    }

    /// Counts one schema more.
    fn count(&mut self) -> Result<(), String> {
        self.schemas += 1;
        match self.schemas > SCHEMAS_MAX {
            true => Err(format!("it has more than {SCHEMAS_MAX} schemas within")),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
