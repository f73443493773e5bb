//! The parameters of functions, as far as reading calls needs them.

use serde_json::Value;

use super::Tool;

/// The names and parameters of functions.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Signatures(Vec<Signature>);

#[derive(Debug, PartialEq, Eq)]
struct Signature {
    name: String,
    /// In the order of the schema.
    parameters: Vec<Parameter>,
}

#[derive(Debug, PartialEq, Eq)]
struct Parameter {
    name: String,
    kind: Kind,
}

/// What the values of a parameter are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Texts.
    Text,
    /// No texts.
    Other,
    /// Texts and others, or the schema does not say.
    Any,
}

impl Signatures {
    /// Those of functions.
    pub(super) fn of(functions: &[Tool]) -> Signatures {
        let signature = |function: &Tool| Signature {
            name: function.name.clone(),
            parameters: function.parameters.as_ref().map(parameters).unwrap_or_default(),
        };
        Signatures(functions.iter().map(signature).collect())
    }

    /// Whether there is a function of this name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|signature| signature.name == name)
    }

    /// Whether the name of a function begins with this text.
    pub(crate) fn may_become(&self, text: &str) -> bool {
        self.0.iter().any(|signature| signature.name.starts_with(text))
    }

    /// What the values of a function's parameter are.
    pub(crate) fn kind(&self, function: &str, parameter: &str) -> Kind {
        let known = self.parameters(function).iter().find(|known| known.name == parameter);
        known.map_or(Kind::Any, |known| known.kind)
    }

    /// The name of the parameter at this position.
    pub(crate) fn at(&self, function: &str, position: usize) -> Option<&str> {
        self.parameters(function).get(position).map(|parameter| &*parameter.name)
    }

    fn parameters(&self, function: &str) -> &[Parameter] {
        let signature = self.0.iter().find(|signature| signature.name == function);
        signature.map_or(&[], |signature| &signature.parameters)
    }
}

fn parameters(schema: &Value) -> Vec<Parameter> {
    let properties = schema.get("properties").and_then(Value::as_object);
    let parameter = |(name, property): (&String, &Value)| Parameter {
        name: name.clone(),
        kind: kind(property, schema),
    };
    properties.into_iter().flatten().map(parameter).collect()
}

/// What the values of a schema are, within the schema `root`.
pub(super) fn kind(schema: &Value, root: &Value) -> Kind {
    let referred = schema.get("$ref").and_then(Value::as_str);
    let referred = referred.and_then(|pointer| root.pointer(pointer.strip_prefix('#')?));
    let schema = referred.unwrap_or(schema);
    let of_values = |values: &[Value]| match values.iter().filter(|value| value.is_string()).count()
    {
        0 => Kind::Other,
        texts if texts == values.len() => Kind::Text,
        _ => Kind::Any,
    };
    if let Some(value) = schema.get("const") {
        return of_values(std::slice::from_ref(value));
    }
    if let Some(Value::Array(values)) = schema.get("enum") {
        return of_values(values);
    }
    match schema.get("type") {
        Some(Value::String(name)) if name == "string" => Kind::Text,
        Some(Value::String(_)) => Kind::Other,
        Some(Value::Array(names)) if names.iter().all(|name| name == "string") => Kind::Text,
        Some(Value::Array(names)) if names.iter().all(|name| name != "string") => Kind::Other,
        _ => Kind::Any,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_schema_says_which_values_are_texts() {
        let schema = json!({
            "properties": {
                "city": { "type": "string" }, "days": { "type": "integer" }, "unit": { "enum": ["C", "F"] },
                "level": { "enum": [1, 2] }, "either": { "type": ["string", "null"] }, "list": { "type": ["array", "null"] },
                "free": {}, "there": { "$ref": "#/$defs/name" }, "mixed": { "enum": ["a", 1] }, "nowhere": { "$ref": "#/x" },
            },
            "$defs": { "name": { "type": "string" } },
        });
        let signatures = Signatures::of(&[Tool::new("f").parameters(schema), Tool::new("g")]);
        let rows = [
            ("city", Kind::Text),
            ("days", Kind::Other),
            ("unit", Kind::Text),
            ("level", Kind::Other),
            ("either", Kind::Any),
            ("list", Kind::Other),
            ("free", Kind::Any),
            ("there", Kind::Text),
            ("mixed", Kind::Any),
            ("nowhere", Kind::Any),
            ("unknown", Kind::Any),
        ];
        for (position, (name, kind)) in rows.into_iter().enumerate() {
            assert_eq!(signatures.kind("f", name), kind, "{name}");
            assert_eq!(signatures.at("f", position), (name != "unknown").then_some(name));
        }
        assert_eq!(signatures.kind("h", "city"), Kind::Any);
        assert!(signatures.has("g") && !signatures.has("ge") && !signatures.may_become("ge"));
    }
}
