//! Functions and their descriptions.

use serde::Deserialize;
use serde_json::{Value, json};

/// A function that a model may call.
///
/// ```
/// use lapwing::{Tool, serde_json::json};
///
/// let tool = Tool::new("get_weather").description("The weather of a city.").parameters(json!({
///     "type": "object", "properties": { "city": { "type": "string" } }, "required": ["city"],
/// }));
/// assert_eq!(tool.name(), "get_weather");
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Tool {
    pub(super) name: String,
    pub(super) parameters: Option<Value>,
    pub(super) is_strict: bool,
    /// As chat templates get it.
    pub(super) described: Value,
}

/// What is read of a description.
#[derive(Deserialize)]
struct Function {
    name: String,
    #[serde(default)]
    parameters: Option<Value>,
    #[serde(default)]
    strict: Option<bool>,
}

impl Tool {
    /// A function without parameters.
    pub fn new(name: impl Into<String>) -> Tool {
        let name = name.into();
        let described = described(&name);
        Tool { name, parameters: None, is_strict: false, described }
    }

    /// Says what it does, for the model.
    #[must_use]
    pub fn description(mut self, text: impl Into<String>) -> Tool {
        let text: String = text.into();
        self.describe("description", text.into());
        self
    }

    /// Sets the JSON schema of its arguments, an object. `docs/structured.md` says what schemas may contain.
    #[must_use]
    pub fn parameters(mut self, schema: Value) -> Tool {
        self.describe("parameters", schema.clone());
        self.parameters = Some(schema);
        self
    }

    /// Sets whether its arguments are always valid for the schema, also where the model decides whether it calls; by default
    /// only calls that a [`ToolChoice`](super::ToolChoice) requires are.
    #[must_use]
    pub fn strict(self, is_strict: bool) -> Tool {
        Tool { is_strict, ..self }
    }

    /// A function as OpenAI's interfaces describe it: with `name`, `description`, `parameters` and `strict`, which may be one level
    /// further down, in `function`. Chat templates get the description with all that it has.
    ///
    /// # Errors
    /// When it has no name, or a member has the wrong type.
    pub fn from_json(description: Value) -> Result<Tool, serde_json::Error> {
        let described = in_chat_form(description);
        let function = described.get("function").unwrap_or(&described).clone();
        let Function { name, parameters, strict } = serde_json::from_value(function)?;
        Ok(Tool { name, parameters, is_strict: strict == Some(true), described })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    fn describe(&mut self, member: &str, value: Value) {
        // What was read may be a list, which has no members.
        if !self.described.get("function").is_some_and(Value::is_object) {
            self.described = described(&self.name);
        }
        self.described["function"][member] = value;
    }
}

fn described(name: &str) -> Value {
    json!({ "type": "function", "function": { "name": name } })
}

/// A function as templates know it: its members are one level further down than in OpenAI's responses.
fn in_chat_form(tool: Value) -> Value {
    match tool {
        Value::Object(mut function)
            if !function.contains_key("function") && function.contains_key("name") =>
        {
            let kind = function.shift_remove("type").unwrap_or_else(|| "function".into());
            json!({ "type": kind, "function": function })
        }
        tool => tool,
    }
}
