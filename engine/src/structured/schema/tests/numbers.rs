use serde_json::json;

use super::{INTEGER_MAX, bounded, prepared, refused};

#[test]
fn numbers_that_cannot_be_written_are_refused() {
    let rows = [
        (json!({ "type": "integer", "maximum": 1e22 }), json!({ "type": "integer" })),
        (
            json!({ "type": "number", "maximum": 1e22 }),
            json!({ "type": "number", "maximum": 1e22 }),
        ),
        (json!({ "maxLength": 3.0, "minItems": 2.0 }), json!({ "maxLength": 3, "minItems": 2 })),
        (json!({ "maxLength": 1e22 }), json!({})),
        (
            json!({ "const": 9_007_199_254_740_992_i64 }),
            json!({ "const": 9_007_199_254_740_992_i64 }),
        ),
    ];
    for (schema, want) in rows {
        assert_eq!(prepared(&schema), (want, vec![]), "{schema}");
    }
    let rows = [
        (json!({ "type": "integer", "minimum": 1e22 }), "64 bits"),
        (json!({ "const": 9_007_199_254_740_993_i64 }), "2^53"),
        (json!({ "enum": [1, { "a": u64::MAX }] }), "2^53"),
        (json!({ "minLength": 2.5 }), "whole number"),
        (json!({ "minLength": 1e22 }), "so long"),
        (json!({ "pattern": "(" }), "pattern"),
        (json!({ "properties": [] }), "wrong type"),
        (json!({ "items": 3 }), "neither an object"),
    ];
    for (schema, part) in rows {
        let error = refused(&schema);
        assert!(error.contains(part), "{schema}: {error}");
    }
}

#[test]
fn integers_end_after_as_many_digits_as_64_bits_have() {
    let [least, most] = [json!(-INTEGER_MAX), json!(INTEGER_MAX)];
    let rows = [
        (
            json!({ "type": "integer" }),
            json!({ "type": "integer", "minimum": least, "maximum": most }),
        ),
        (
            json!({ "type": ["integer", "null"], "minimum": 3, "maximum": 1e22 }),
            json!({ "type": ["integer", "null"], "minimum": 3, "maximum": most }),
        ),
        (
            json!({ "type": "integer", "exclusiveMaximum": 9 }),
            json!({ "type": "integer", "exclusiveMaximum": 9, "minimum": least }),
        ),
        (
            json!({ "type": "integer", "enum": [1, 2] }),
            json!({ "type": "integer", "enum": [1, 2] }),
        ),
        (json!({ "type": ["integer", "number"] }), json!({ "type": ["integer", "number"] })),
        (json!({ "type": "number" }), json!({ "type": "number" })),
    ];
    for (schema, want) in rows {
        assert_eq!(bounded(&schema), (want, vec![]), "{schema}");
    }
}
