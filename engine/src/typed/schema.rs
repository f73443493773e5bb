//! The schemas of types.

use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema};
use serde_json::{Value, json};

use crate::structured::Grammar;
use crate::tools::Tool;

impl Grammar {
    /// JSON that is a value of type `T`. The schema is that of draft 2020-12, in which integers have the bounds of their type.
    pub fn of<T: JsonSchema>() -> Grammar {
        Grammar::json_schema(schema_of::<T>())
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
    let settings = SchemaSettings::draft2020_12().with_transform(RecursiveTransform(bounded));
    settings.into_generator().into_root_schema_for::<T>().to_value()
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
