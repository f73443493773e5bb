//! The schemas of types.

use schemars::generate::SchemaSettings;
use schemars::transform::{RecursiveTransform, Transform};
use schemars::{JsonSchema, Schema};
use serde_json::{Value, json};

use crate::structured::Grammar;
use crate::tools::Tool;

impl Grammar {
    /// JSON that is a value of type `T`. The schema is that of draft 2020-12, in which integers have the bounds of their type, and
    /// zero has no sign.
    pub fn of<T: JsonSchema>() -> Grammar {
        Grammar::json_schema(grammar_schema_of::<T>())
    }
}

impl Tool {
    /// Sets the JSON schema of its arguments to that of the type `T`, a struct. A comment on a field is its description.
    #[must_use]
    pub fn parameters_of<T: JsonSchema>(self) -> Tool {
        self.parameters(schema_of::<T>())
    }
}

/// The schema of a type.
pub(super) fn schema_of<T: JsonSchema>() -> Value {
    root_of::<T>().to_value()
}

/// The schema of a type, for a grammar.
pub(super) fn grammar_schema_of<T: JsonSchema>() -> Value {
    let mut schema = root_of::<T>();
    RecursiveTransform(unsigned_zero).transform(&mut schema);
    schema.to_value()
}

fn root_of<T: JsonSchema>() -> Schema {
    let settings = SchemaSettings::draft2020_12().with_transform(RecursiveTransform(bounded));
    settings.into_generator().into_root_schema_for::<T>()
}

/// Puts bounds in place of a format that names a type of numbers, which no standard knows.
fn bounded(schema: &mut Schema) {
    let (least, most) = match schema.get("format").and_then(Value::as_str) {
        Some("int8") => (json!(i8::MIN), json!(i8::MAX)),
        Some("int16") => (json!(i16::MIN), json!(i16::MAX)),
        Some("int32") => (json!(i32::MIN), json!(i32::MAX)),
        Some("uint8") => (json!(0), json!(u8::MAX)),
        Some("uint16") => (json!(0), json!(u16::MAX)),
        Some("uint32") => (json!(0), json!(u32::MAX)),
        // A grammar's integers have at most 64 bits.
        Some("int" | "int64" | "int128") => (Value::Null, Value::Null),
        Some("uint" | "uint64" | "uint128") => (json!(0), Value::Null),
        Some("float" | "double") => (Value::Null, Value::Null),
        _ => return,
    };
    schema.remove("format");
    for (keyword, bound) in [("minimum", least), ("maximum", most)] {
        if schema.get(keyword).is_none() && !bound.is_null() {
            schema.insert(keyword.to_owned(), bound);
        }
    }
}

/// Divides integers of both signs into negative ones and others: `-0`, which would be one, is read as a floating-point number.
fn unsigned_zero(schema: &mut Schema) {
    let kinds = match schema.get("type") {
        Some(Value::Array(kinds)) => kinds.clone(),
        Some(kind) => vec![kind.clone()],
        None => return,
    };
    let bound = |keyword: &str| schema.get(keyword).and_then(Value::as_f64);
    let has_both = bound("minimum").is_none_or(|least| least < 0.0)
        && bound("maximum").is_none_or(|most| most >= 0.0);
    let is_plain = !["anyOf", "const", "enum"].iter().any(|keyword| schema.get(*keyword).is_some());
    if !kinds.contains(&json!("integer")) || !has_both || !is_plain {
        return;
    }
    let others = kinds.into_iter().filter(|kind| *kind != "integer");
    let others = others.map(|kind| json!({ "type": kind }));
    let signs =
        [json!({ "type": "integer", "maximum": -1 }), json!({ "type": "integer", "minimum": 0 })];
    schema.insert("anyOf".to_owned(), signs.into_iter().chain(others).collect());
}
