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
    schema: Value,
}

/// A value inside of the arguments of a function.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<'a> {
    root: &'a Value,
    schema: &'a Value,
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
            schema: function.parameters.clone().unwrap_or_default(),
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

    /// The arguments of a function as a whole.
    pub(crate) fn arguments(&self, function: &str) -> Place<'_> {
        let schema = self.signature(function).map_or(&Value::Null, |signature| &signature.schema);
        Place::of(schema)
    }

    fn parameters(&self, function: &str) -> &[Parameter] {
        self.signature(function).map_or(&[], |signature| &signature.parameters)
    }

    fn signature(&self, function: &str) -> Option<&Signature> {
        self.0.iter().find(|signature| signature.name == function)
    }
}

impl<'a> Place<'a> {
    /// The value of a schema that refers to nothing outside of it.
    pub(crate) fn of(root: &'a Value) -> Place<'a> {
        Place { root, schema: resolved(root, root) }
    }

    /// The schema that has the value in it.
    pub(crate) fn root(self) -> &'a Value {
        self.root
    }

    /// The schema of the value; null if there is none.
    pub(crate) fn schema(self) -> &'a Value {
        self.schema
    }

    /// A member of an object.
    pub(crate) fn member(self, name: &str) -> Place<'a> {
        let property = self.schema.get("properties").and_then(|properties| properties.get(name));
        self.at(property.or_else(|| self.schema.get("additionalProperties")))
    }

    /// An item of a list.
    pub(crate) fn item(self) -> Place<'a> {
        self.at(self.schema.get("items"))
    }

    /// Whether the schema says that the value may be of this type.
    pub(crate) fn is(self, kind: &str) -> bool {
        match self.schema.get("type") {
            Some(Value::Array(names)) => names.iter().any(|name| name == kind),
            name => name.is_some_and(|name| name == kind),
        }
    }

    /// What the value is.
    pub(crate) fn kind(self) -> Kind {
        kind(self.schema, self.root)
    }

    fn at(self, schema: Option<&'a Value>) -> Place<'a> {
        let schema = schema.map_or(&Value::Null, |schema| resolved(schema, self.root));
        Place { schema, ..self }
    }
}

/// The schema that another one refers to, or itself.
fn resolved<'a>(schema: &'a Value, root: &'a Value) -> &'a Value {
    let referred = schema.get("$ref").and_then(Value::as_str);
    let referred = referred.and_then(|pointer| root.pointer(pointer.strip_prefix('#')?));
    referred.unwrap_or(schema)
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
    let schema = resolved(schema, root);
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
        let place = signatures.arguments("f");
        assert_eq!(place.member("there").kind(), Kind::Text);
        assert!(place.member("list").item().schema().is_null());
        assert!(place.member("list").is("array") && place.member("days").is("integer"));
        assert!(signatures.has("g") && !signatures.has("ge") && !signatures.may_become("ge"));
    }
}
