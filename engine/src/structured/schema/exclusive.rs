//! Whether the parts of a `oneOf` exclude each other, so that it is an `anyOf`.

use serde_json::Value;

use super::document::{Document, Place};

/// Most references that are followed to a schema.
const REFERENCES_MAX: usize = 16;
/// Most parts that are compared.
const PARTS_MAX: usize = 64;

/// Whether no value is valid for two of `schemas`, as far as types, constants and properties with constants tell.
pub(super) fn are_exclusive<'a>(document: &Document<'a>, schemas: &[Place<'a>]) -> bool {
    let schemas: Vec<Option<Place<'a>>> =
        schemas.iter().map(|schema| followed(document, *schema)).collect();
    schemas.len() <= PARTS_MAX
        && schemas.iter().enumerate().all(|(at, one)| {
            schemas[at + 1..].iter().all(|other| match (one, other) {
                (Some(one), Some(other)) => exclude(document, *one, *other),
                _ => false,
            })
        })
}

fn exclude<'a>(document: &Document<'a>, one: Place<'a>, other: Place<'a>) -> bool {
    if let (Some(one), Some(other)) = (types(one.value), types(other.value))
        && !one.iter().any(|kind| other.iter().any(|other| overlap(kind, other)))
    {
        return true;
    }
    if let (Some(one), Some(other)) = (constants(one.value), constants(other.value)) {
        return !one.iter().any(|value| other.contains(value));
    }
    is_object(one.value) && is_object(other.value) && have_different_tags(document, one, other)
}

fn overlap(one: &str, other: &str) -> bool {
    one == other || [one, other] == ["integer", "number"] || [one, other] == ["number", "integer"]
}

fn is_object(schema: &Value) -> bool {
    schema.get("type").and_then(Value::as_str) == Some("object")
}

/// Whether a property that both require has constants that differ.
fn have_different_tags<'a>(document: &Document<'a>, one: Place<'a>, other: Place<'a>) -> bool {
    let requires = |schema: &Value, name: &Value| {
        schema["required"].as_array().is_some_and(|names| names.contains(name))
    };
    let names = one.value["required"].as_array().into_iter().flatten();
    let mut common = names.filter(|name| requires(other.value, name)).filter_map(Value::as_str);
    common.any(|name| match (tag(document, one, name), tag(document, other, name)) {
        (Some(one), Some(other)) => !one.iter().any(|value| other.contains(value)),
        _ => false,
    })
}

/// The constants of a property.
fn tag<'a>(document: &Document<'a>, schema: Place<'a>, name: &str) -> Option<Vec<&'a Value>> {
    let tag = schema.value["properties"].get(name)?;
    constants(followed(document, document.place(tag, schema.resource))?.value)
}

/// The schema that a chain of references ends with.
fn followed<'a>(document: &Document<'a>, mut schema: Place<'a>) -> Option<Place<'a>> {
    for _ in 0..REFERENCES_MAX {
        let Some(reference) = schema.value.get("$ref").and_then(Value::as_str) else {
            return Some(schema);
        };
        schema = document.resolve(schema.resource, reference).ok()?;
    }
    None
}

/// The types of a schema, if it names them.
fn types(schema: &Value) -> Option<Vec<&str>> {
    match schema.get("type")? {
        Value::String(kind) => Some(vec![kind]),
        Value::Array(kinds) => kinds.iter().map(Value::as_str).collect(),
        _ => None,
    }
}

/// The values of a schema, if it lists them.
fn constants(schema: &Value) -> Option<Vec<&Value>> {
    match (schema.get("const"), schema.get("enum")) {
        (Some(value), _) => Some(vec![value]),
        (None, Some(Value::Array(values))) => Some(values.iter().collect()),
        _ => None,
    }
}
