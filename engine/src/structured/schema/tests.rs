mod numbers;

use serde_json::{Value, json};

use super::Schemas;

/// The largest integer of 64 bits that a double holds.
const INTEGER_MAX: i64 = 9_223_372_036_854_774_784;

/// A schema as it is compiled, but for the bounds that every integer has, and the keywords that have no effect.
fn prepared(schema: &Value) -> (Value, Vec<String>) {
    let (mut prepared, ignored) = bounded(schema);
    without_bounds(&mut prepared);
    (prepared, ignored)
}

/// Takes the bounds that every integer has.
fn without_bounds(schema: &mut Value) {
    match schema {
        Value::Array(schemas) => schemas.iter_mut().for_each(without_bounds),
        Value::Object(members) => {
            let every = [("minimum", json!(-INTEGER_MAX)), ("maximum", json!(INTEGER_MAX))];
            members.retain(|name, value| !every.iter().any(|it| it.0 == name && it.1 == *value));
            members.values_mut().for_each(without_bounds);
        }
        _ => {}
    }
}

/// A schema as it is compiled, and the keywords that have no effect.
fn bounded(schema: &Value) -> (Value, Vec<String>) {
    let mut schemas = Schemas::default();
    let root = schemas.add("schema", schema).unwrap_or_else(|error| panic!("{schema}: {error}"));
    (schemas.with_definitions(root), schemas.into_ignored())
}

fn refused(schema: &Value) -> String {
    match Schemas::default().add("schema", schema) {
        Ok(written) => panic!("{schema} became {written}"),
        Err(error) => error,
    }
}

#[test]
fn objects_are_closed_where_their_schema_speaks_of_no_other_properties() {
    let a = json!({ "a": { "type": "integer" } });
    let rows = [
        // Closed: with properties, also none of them.
        (json!({ "properties": a }), json!({ "properties": a, "additionalProperties": false })),
        (json!({ "properties": {} }), json!({ "properties": {}, "additionalProperties": false })),
        // What is required exists.
        (
            json!({ "properties": a, "required": ["b"] }),
            json!({ "properties": { "a": { "type": "integer" }, "b": true }, "required": ["b"], "additionalProperties": false }),
        ),
        // As they are: no properties, or a word on others.
        (json!({ "type": "object" }), json!({ "type": "object" })),
        (
            json!({ "properties": a, "additionalProperties": true }),
            json!({ "properties": a, "additionalProperties": true }),
        ),
        (
            json!({ "properties": a, "patternProperties": { "^x": true } }),
            json!({ "properties": a, "patternProperties": { "^x": true } }),
        ),
        (
            json!({ "properties": a, "unevaluatedProperties": false }),
            json!({ "properties": a, "additionalProperties": false }),
        ),
        // Alternatives are closed one by one.
        (
            json!({ "anyOf": [{ "properties": a }, { "type": "null" }] }),
            json!({ "anyOf": [{ "properties": a, "additionalProperties": false }, { "type": "null" }] }),
        ),
        // A single part of `allOf` is closed itself.
        (
            json!({ "allOf": [{ "properties": a }], "title": "x" }),
            json!({ "allOf": [{ "properties": a, "additionalProperties": false }] }),
        ),
        // Several parts are closed together.
        (
            json!({ "allOf": [{ "properties": a }, { "properties": { "b": { "type": "string" } } }] }),
            json!({ "allOf": [
                { "properties": a }, { "properties": { "b": { "type": "string" } } },
                { "properties": { "a": true, "b": true }, "additionalProperties": false },
            ] }),
        ),
        // One of several parts speaks of others.
        (
            json!({ "properties": a, "allOf": [{ "additionalProperties": { "type": "integer" } }] }),
            json!({ "properties": a, "allOf": [{ "additionalProperties": { "type": "integer" } }] }),
        ),
        // Parts of a property that two schemas describe stay open.
        (
            json!({ "properties": { "p": { "properties": a } }, "allOf": [{ "properties": { "p": { "properties": {} } } }] }),
            json!({
                "properties": { "p": { "properties": a } },
                "allOf": [
                    { "properties": { "p": { "properties": {} } } },
                    { "properties": { "p": true }, "additionalProperties": false },
                ],
            }),
        ),
    ];
    for (schema, want) in rows {
        assert_eq!(prepared(&schema), (want, vec![]), "{schema}");
    }
}

#[test]
fn references_lead_to_definitions_whatever_their_form() {
    let point =
        json!({ "properties": { "x": { "type": "integer" } }, "additionalProperties": false });
    let forms = [
        json!({ "properties": { "p": { "$ref": "#/$defs/P" } }, "$defs": { "P": { "properties": { "x": { "type": "integer" } } } } }),
        json!({ "properties": { "p": { "$ref": "#/definitions/a~1b%20c" } }, "definitions": { "a/b c": { "properties": { "x": { "type": "integer" } } } } }),
        json!({ "properties": { "p": { "$ref": "#P" } }, "$defs": { "P": { "$anchor": "P", "properties": { "x": { "type": "integer" } } } } }),
        json!({ "properties": { "p": { "$ref": "#P" } }, "definitions": { "P": { "$id": "#P", "properties": { "x": { "type": "integer" } } } } }),
        json!({ "$id": "http://a.b/c/d.json", "properties": { "p": { "$ref": "p.json" } }, "$defs": { "P": { "$id": "/c/p.json", "properties": { "x": { "type": "integer" } } } } }),
        json!({ "$id": "http://a.b/c.json", "properties": { "p": { "$ref": "http://a.b/c.json#/$defs/P" } }, "$defs": { "P": { "properties": { "x": { "type": "integer" } } } } }),
        json!({ "properties": { "p": { "$ref": "#/components/P" } }, "components": { "P": { "properties": { "x": { "type": "integer" } } } } }),
    ];
    let want = json!({ "properties": { "p": { "$ref": "#/$defs/0" } }, "additionalProperties": false, "$defs": { "0": point } });
    for schema in forms {
        assert_eq!(prepared(&schema), (want.clone(), vec![]), "{schema}");
    }
    let node = json!({ "properties": { "next": { "$ref": "#" } } });
    let closed =
        json!({ "properties": { "next": { "$ref": "#/$defs/0" } }, "additionalProperties": false });
    let (schema, _) = prepared(&node);
    assert_eq!(schema["$defs"]["0"], closed);
    assert_eq!(schema["properties"], closed["properties"]);
    // Pointers within a schema that has an identifier count from it.
    let within = json!({ "properties": { "p": { "$id": "p", "properties": { "q": { "$ref": "#/$defs/Q" } }, "$defs": { "Q": { "const": 1 } } } }, "$defs": { "Q": { "const": 2 } } });
    assert_eq!(prepared(&within).0["$defs"]["0"], json!({ "const": 1 }));
    assert!(refused(&json!({ "$ref": "other.json" })).contains("$defs"));
    assert!(refused(&json!({ "$ref": "#/$defs/none" })).contains("#/$defs/none"));
}

#[test]
fn documents_of_one_grammar_keep_their_own_definitions() {
    let mut schemas = Schemas::default();
    let document = |value: i32| json!({ "properties": { "p": { "$ref": "#/$defs/P" } }, "$defs": { "P": { "const": value } } });
    let one = schemas.add("one", &document(1)).expect("a schema");
    let two = schemas.add("two", &document(2)).expect("a schema");
    let whole = schemas.with_definitions(json!({ "anyOf": [one, two] }));
    for (at, value) in [(0, 1), (1, 2)] {
        let reference =
            whole["anyOf"][at]["properties"]["p"]["$ref"].as_str().expect("a reference");
        assert_eq!(whole.pointer(&reference[1..]), Some(&json!({ "const": value })));
    }
}

/// Each schema becomes the one after it, and the named keywords have no effect.
fn check<const N: usize>(rows: [(Value, Value, Vec<&str>); N]) {
    for (schema, want, named) in rows {
        let named: Vec<String> = named.into_iter().map(str::to_owned).collect();
        assert_eq!(prepared(&schema), (want, named), "{schema}");
    }
}

#[test]
fn keywords_that_only_narrow_are_named_and_left_out() {
    check([
        (
            json!({ "type": "string", "format": "uri-reference" }),
            json!({ "type": "string" }),
            vec!["schema/format"],
        ),
        (
            json!({ "type": "string", "format": "date" }),
            json!({ "type": "string", "format": "date" }),
            vec![],
        ),
        (
            json!({ "type": "array", "uniqueItems": true, "contains": { "const": 1 }, "minContains": 2 }),
            json!({ "type": "array" }),
            vec!["schema/uniqueItems", "schema/contains", "schema/minContains"],
        ),
        (json!({ "type": "array", "uniqueItems": false }), json!({ "type": "array" }), vec![]),
        (
            json!({ "type": "integer", "not": { "const": 3 } }),
            json!({ "type": "integer" }),
            vec!["schema/not"],
        ),
        (json!({ "not": {} }), json!(false), vec![]),
        (
            json!({ "items": { "contentEncoding": "base64", "type": "string" } }),
            json!({ "items": { "type": "string" } }),
            vec!["schema/items/contentEncoding"],
        ),
        // Notes are not named, nor what the standard does not know.
        (
            json!({ "title": "t", "default": 1, "examples": [], "x-y": 1, "discriminator": {}, "type": "null" }),
            json!({ "type": "null" }),
            vec![],
        ),
    ]);
}

#[test]
fn names_and_numbers_of_properties_are_followed_where_they_can_be() {
    check([
        // Names of properties that are listed, or have no form at all.
        (
            json!({ "propertyNames": { "type": "string" }, "additionalProperties": { "type": "integer" } }),
            json!({ "additionalProperties": { "type": "integer" } }),
            vec![],
        ),
        (json!({ "propertyNames": { "maxLength": 3 } }), json!({}), vec!["schema/propertyNames"]),
        (
            json!({ "propertyNames": { "enum": ["a", "b"] }, "additionalProperties": { "type": "integer" } }),
            json!({ "additionalProperties": false, "patternProperties": { "^(?:a|b)$": { "type": "integer" } } }),
            vec![],
        ),
        // Numbers of properties are counted where all are required.
        (
            json!({ "properties": { "a": true, "b": true }, "minProperties": 2 }),
            json!({ "properties": { "a": true, "b": true }, "additionalProperties": false }),
            vec!["schema/minProperties"],
        ),
        (
            json!({ "properties": { "a": true }, "minProperties": 1 }),
            json!({ "properties": { "a": true }, "minProperties": 1, "additionalProperties": false }),
            vec![],
        ),
    ]);
}

#[test]
fn alternatives_and_patterns_are_followed_where_they_can_be() {
    check([
        // Alternatives that exclude each other need no count.
        (
            json!({ "oneOf": [{ "type": "string" }, { "type": "null" }] }),
            json!({ "anyOf": [{ "type": "string" }, { "type": "null" }] }),
            vec![],
        ),
        (
            json!({ "oneOf": [{ "type": "integer" }, { "type": "number" }] }),
            json!({ "anyOf": [{ "type": "integer" }, { "type": "number" }] }),
            vec!["schema/oneOf"],
        ),
        (
            json!({ "oneOf": [{ "$ref": "#/$defs/A" }, { "$ref": "#/$defs/B" }], "$defs": {
                "A": { "type": "object", "properties": { "k": { "const": "a" } }, "required": ["k"] },
                "B": { "type": "object", "properties": { "k": { "const": "b" } }, "required": ["k"] },
            } }),
            json!({ "anyOf": [{ "$ref": "#/$defs/0" }, { "$ref": "#/$defs/1" }], "$defs": {
                "0": { "type": "object", "properties": { "k": { "const": "a" } }, "required": ["k"], "additionalProperties": false },
                "1": { "type": "object", "properties": { "k": { "const": "b" } }, "required": ["k"], "additionalProperties": false },
            } }),
            vec![],
        ),
        // A pattern is followed as far as it is regular.
        (
            json!({ "pattern": r"^(?!^[-+.]*$)[+-]?0*\d*\.?\d*$" }),
            json!({ "pattern": r"^[+-]?0*\d*\.?\d*$" }),
            vec!["schema/pattern"],
        ),
        (json!({ "pattern": r"a(?=b)" }), json!({}), vec!["schema/pattern"]),
        (json!({ "pattern": "^[a-z]{2}$" }), json!({ "pattern": "^[a-z]{2}$" }), vec![]),
    ]);
}

#[test]
fn hostile_schemas_end_with_an_error_or_in_a_small_form() {
    // Every level refers to the next one twice.
    let mut defs = serde_json::Map::new();
    for level in 0..60 {
        let next = format!("#/$defs/{}", level + 1);
        defs.insert(
            level.to_string(),
            json!({ "allOf": [{ "$ref": next }, { "$ref": next }], "properties": { "a": true } }),
        );
    }
    defs.insert("60".to_owned(), json!({ "properties": { "b": true } }));
    let (schema, _) = prepared(&json!({ "$ref": "#/$defs/0", "$defs": defs }));
    assert!(schema.to_string().len() < 100_000);
    // A reference to itself in place.
    let (schema, _) = prepared(&json!({ "allOf": [{ "$ref": "#" }], "properties": { "a": true } }));
    assert!(schema.to_string().len() < 1_000, "{schema}");
    let wide: serde_json::Map<String, Value> =
        (0..60_000).map(|at| (at.to_string(), json!(true))).collect();
    assert!(refused(&json!({ "properties": wide })).contains("more than"));
}
