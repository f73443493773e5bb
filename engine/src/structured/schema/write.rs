//! Writes the schemas of a document as the library compiles them.

mod objects;
mod output;

use std::collections::{HashMap, VecDeque};

use serde_json::{Map, Value, json};

use super::Schemas;
use super::closing::{Closing, Shapes, Whole};
use super::document::{Document, Place, address};
use super::exclusive::are_exclusive;
use super::values::{self, Kept};
use output::{At, Output};

/// Writes a document.
pub(super) struct Writer<'a, 'd, 's> {
    schemas: &'s mut Schemas,
    document: &'d Document<'a>,
    shapes: Shapes<'a, 'd>,
    /// Numbers of definitions by what they define.
    numbers: HashMap<(usize, Closing), usize>,
    /// Definitions that are still to be written.
    open: VecDeque<(usize, Place<'a>, Closing, String)>,
    label: String,
}

/// The members of a schema that is written.
#[derive(Clone, Copy)]
struct Members<'a> {
    all: &'a Map<String, Value>,
    /// The resource that they are in.
    resource: usize,
    /// What is done with objects of the schemas that hold for the same value.
    closing: Closing,
}

impl<'a, 'd, 's> Writer<'a, 'd, 's> {
    pub(super) fn new(schemas: &'s mut Schemas, document: &'d Document<'a>) -> Self {
        Writer {
            schemas,
            document,
            shapes: Shapes::new(document),
            numbers: HashMap::new(),
            open: VecDeque::new(),
            label: String::new(),
        }
    }

    /// The outermost schema, with all definitions that it needs.
    pub(super) fn document(mut self, label: &str) -> Result<Value, String> {
        self.label = label.to_owned();
        let root =
            self.schema(self.document.root(), Closing::Close, &At { outer: None, segment: label })?;
        while let Some((number, place, closing, pointer)) = self.open.pop_front() {
            let at = At { outer: None, segment: &pointer };
            let schema = self.schema(place, closing, &at)?;
            self.schemas.definitions.insert(number.to_string(), schema);
        }
        Ok(root)
    }

    /// A schema.
    fn schema(&mut self, place: Place<'a>, closing: Closing, at: &At<'_>) -> Result<Value, String> {
        self.schemas.count()?;
        let members = match place.value {
            Value::Bool(_) => return Ok(place.value.clone()),
            Value::Object(members) => members,
            _ => return Err(format!("{} is neither an object nor a boolean", at.pointer())),
        };
        if members.get("not").is_some_and(|not| *not == json!({}) || *not == json!(true)) {
            return Ok(Value::Bool(false));
        }
        let whole = match closing {
            Closing::Close => self.shapes.whole(place),
            _ => Whole::Elsewhere,
        };
        let known = match whole {
            Whole::Composed => Some(self.shapes.known(place)),
            _ => None,
        };
        let inner = match &known {
            None => closing,
            Some(known) if known.shares_parts() => Closing::AroundShared,
            Some(_) => Closing::Around,
        };
        for _ in 0..known.as_ref().map_or(0, |known| known.schemas + known.names.len()) {
            self.schemas.count()?;
        }
        let mut output = Output { members: Map::new(), all: Vec::new() };
        let of = Members { all: members, resource: place.resource, closing: inner };
        for keyword in members.keys() {
            self.keyword(keyword, of, &mut output, at)?;
        }
        output.join(values::integer_bounds(members));
        match (whole, known) {
            (Whole::Own, _) => self.close(place, &mut output, at),
            (_, Some(known)) => self.close_composed(members, &known, &mut output, at),
            _ => self.leave(members, &mut output, at),
        }
        self.count_properties(members, &mut output, at);
        Ok(output.schema())
    }

    /// Writes a keyword of a schema.
    fn keyword(
        &mut self,
        keyword: &'a str,
        of: Members<'a>,
        output: &mut Output,
        at: &At<'_>,
    ) -> Result<(), String> {
        let Members { all: members, resource, closing } = of;
        let value = &members[keyword];
        let below = at.below(keyword);
        let document = self.document;
        let part = |value: &'a Value| document.place(value, resource);
        let of_value = values::kept(keyword, value, members);
        match of_value.map_err(|error| format!("{}: {error}", at.pointer()))? {
            Some(Kept::As(value)) => output.add(keyword, value),
            Some(Kept::Needless) => {}
            Some(Kept::Instead(members)) => output.join(members),
            Some(Kept::Ignored(rest)) => {
                self.schemas.ignore(below.pointer());
                rest.into_iter().for_each(|rest| output.add(keyword, rest));
            }
            None => match (keyword, value) {
                ("$ref" | "$dynamicRef" | "$recursiveRef", Value::String(reference)) => {
                    let target = document.resolve(resource, reference);
                    let target = target.map_err(|error| format!("{}: {error}", at.pointer()))?;
                    output.add("$ref", self.definition(target, closing, reference));
                }
                ("properties" | "patternProperties", Value::Object(schemas)) => {
                    let mut written = Map::new();
                    for (name, schema) in schemas {
                        let at = below.below(name);
                        let schema = self.schema(part(schema), closing.of_parts(), &at)?;
                        written.insert(name.clone(), schema);
                    }
                    output.add(keyword, written.into());
                }
                ("items" | "prefixItems", Value::Array(schemas)) => {
                    let schemas = self.list(schemas, resource, closing.of_parts(), &below)?;
                    output.add("prefixItems", schemas.into());
                }
                ("additionalItems", _) if !members["items"].is_array() => {}
                ("items" | "additionalItems" | "additionalProperties", _) => {
                    let schema = self.schema(part(value), closing.of_parts(), &below)?;
                    let is_items = keyword == "additionalItems";
                    output.add(if is_items { "items" } else { keyword }, schema);
                }
                ("allOf", Value::Array(schemas)) => {
                    let schemas = self.list(schemas, resource, closing, &below)?;
                    output.add_all(schemas);
                }
                ("anyOf" | "oneOf", Value::Array(schemas)) => {
                    let places: Vec<Place<'_>> = schemas.iter().map(part).collect();
                    if keyword == "oneOf" && !are_exclusive(document, &places) {
                        self.schemas.ignore(below.pointer());
                    }
                    let schemas = self.list(schemas, resource, closing, &below)?;
                    output.add("anyOf", schemas.into());
                }
                _ => return Err(format!("{} has the wrong type", below.pointer())),
            },
        }
        Ok(())
    }

    /// Schemas of a list.
    fn list(
        &mut self,
        schemas: &'a [Value],
        resource: usize,
        closing: Closing,
        at: &At<'_>,
    ) -> Result<Vec<Value>, String> {
        let schemas = schemas.iter().enumerate();
        let one = |(number, schema): (usize, &'a Value)| {
            let place = self.document.place(schema, resource);
            self.schema(place, closing, &at.below(&number.to_string()))
        };
        schemas.map(one).collect()
    }

    /// A reference to the definition of a schema.
    fn definition(&mut self, target: Place<'a>, closing: Closing, reference: &str) -> Value {
        let number = *self.numbers.entry((address(target.value), closing)).or_insert_with(|| {
            let number = self.schemas.next;
            self.schemas.next += 1;
            let pointer = format!("{}{}", self.label, reference.trim_start_matches('#'));
            self.open.push_back((number, target, closing, pointer));
            number
        });
        Value::from(format!("#/$defs/{number}"))
    }
}
