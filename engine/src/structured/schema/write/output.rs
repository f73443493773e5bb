//! A schema that is being written, and where it is.

use serde_json::{Map, Value};

const ALL: &str = "allOf";

/// A schema that is being written.
pub(super) struct Output {
    pub(super) members: Map<String, Value>,
    /// Further schemas that hold for the same value.
    pub(super) all: Vec<Value>,
}

impl Output {
    /// Adds a keyword.
    pub(super) fn add(&mut self, keyword: &str, value: Value) {
        self.join(Map::from_iter([(keyword.to_owned(), value)]));
    }

    /// Adds schemas that hold for the same value.
    pub(super) fn add_all(&mut self, schemas: Vec<Value>) {
        if !schemas.is_empty() {
            // Its place among the keywords is that of the order of properties.
            self.members.entry(ALL).or_insert(Value::Null);
            self.all.extend(schemas);
        }
    }

    /// Adds members; those that are there already hold as well.
    pub(super) fn join(&mut self, members: Map<String, Value>) {
        if members.keys().any(|keyword| self.members.contains_key(keyword)) {
            self.all.push(members.into());
        } else {
            self.members.extend(members);
        }
    }

    /// Whether other schemas hold for the same value.
    pub(super) fn refers(&self) -> bool {
        ["$ref", "anyOf"].iter().any(|keyword| self.members.contains_key(*keyword))
    }

    pub(super) fn schema(mut self) -> Value {
        if !self.all.is_empty() {
            self.members.insert(ALL.to_owned(), self.all.into());
        }
        self.members.into()
    }
}

/// Where a schema is, for messages.
pub(super) struct At<'p> {
    pub(super) outer: Option<&'p At<'p>>,
    pub(super) segment: &'p str,
}

impl At<'_> {
    pub(super) fn pointer(&self) -> String {
        let outer = self.outer.map(At::pointer);
        outer.map_or_else(|| self.segment.to_owned(), |outer| format!("{outer}/{}", self.segment))
    }

    pub(super) fn below<'p>(&'p self, segment: &'p str) -> At<'p> {
        At { outer: Some(self), segment }
    }
}
