//! What the keywords of a schema hold.

use serde_json::Value;

/// Keywords that narrow what is valid and that the library cannot follow.
pub(super) const NARROWING: [&str; 17] = [
    "contains",
    "contentEncoding",
    "contentMediaType",
    "contentSchema",
    "dependencies",
    "dependentRequired",
    "dependentSchemas",
    "else",
    "if",
    "maxContains",
    "minContains",
    "not",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
    "uniqueItems",
];

/// Keywords whose values have schemas that are followed.
pub(super) const WITH_SCHEMAS: [&str; 12] = [
    "$dynamicRef",
    "$recursiveRef",
    "$ref",
    "additionalItems",
    "additionalProperties",
    "allOf",
    "anyOf",
    "items",
    "oneOf",
    "patternProperties",
    "prefixItems",
    "properties",
];

/// Keywords that say something about the parts of a value.
pub(super) const OF_PARTS: [&str; 8] = [
    "properties",
    "required",
    "patternProperties",
    "additionalProperties",
    "unevaluatedProperties",
    "propertyNames",
    "items",
    "prefixItems",
];

/// Keywords that say whether an object may have other properties than those of `properties`.
pub(super) const OF_OTHERS: [&str; 4] =
    ["additionalProperties", "patternProperties", "unevaluatedProperties", "propertyNames"];

/// Keywords whose schemas hold for the same value, but only under a condition; they are not followed.
pub(super) const CONDITIONAL: [&str; 5] =
    ["if", "then", "else", "dependentSchemas", "dependencies"];

/// Calls `each` with every schema that is directly below `schema`, whatever its keyword.
pub(super) fn below<'a>(schema: &'a Value, each: &mut dyn FnMut(&'a Value)) {
    let Value::Object(members) = schema else { return };
    for (keyword, value) in members {
        match (keyword.as_str(), value) {
            (
                "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas"
                | "dependencies",
                Value::Object(schemas),
            ) => schemas.values().for_each(&mut *each),
            ("allOf" | "anyOf" | "oneOf" | "prefixItems" | "items", Value::Array(schemas)) => {
                schemas.iter().for_each(&mut *each);
            }
            (
                "items"
                | "additionalItems"
                | "additionalProperties"
                | "unevaluatedItems"
                | "unevaluatedProperties"
                | "propertyNames"
                | "contains"
                | "contentSchema"
                | "not"
                | "if"
                | "then"
                | "else",
                Value::Object(_),
            ) => each(value),
            _ => {}
        }
    }
}
