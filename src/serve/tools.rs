//! Functions that a model may call: how it is told of them, and how it writes calls.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::error::ApiError;
use crate::chat::{ChatTemplate, Message};
use crate::request::Request;

/// How a model writes calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    /// `<tool_call>{"name": …, "arguments": {…}}</tool_call>`, as Hermes and Qwen do.
    Tagged,
    /// The whole text is such an object, or a list of them; `parameters` may stand for `arguments`. So do
    /// Llama 3 and Mistral.
    Bare,
}

/// The functions of a request.
#[derive(Clone, Debug)]
pub(crate) struct Tools {
    pub(crate) style: Style,
    functions: Vec<Function>,
    /// As the client sent them.
    sent: Value,
    pub(crate) choice: ToolChoice,
    /// Whether an answer may have several calls.
    pub(crate) parallel: bool,
}

#[derive(Clone, Debug, Deserialize)]
struct Function {
    name: String,
    #[serde(default)]
    parameters: Option<Value>,
}

/// Whether the model has to call a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ToolChoice {
    /// If it wants to.
    Auto,
    /// One of them.
    Required,
    /// This one.
    Named(String),
}

/// A call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct ToolCall {
    pub(crate) id: String,
    #[serde(rename = "type")]
    kind: &'static str,
    pub(crate) function: CalledFunction,
}

impl ToolCall {
    pub(crate) fn new(id: String, function: CalledFunction) -> ToolCall {
        ToolCall { id, kind: "function", function }
    }
}

/// The function of a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct CalledFunction {
    pub(crate) name: String,
    /// Arguments as text in JSON.
    pub(crate) arguments: String,
}

impl Tools {
    /// The functions of a request; `None` without any, or if it forbids calls.
    ///
    /// # Errors
    /// When a function has no name, or the choice names none of them.
    pub(crate) fn new(
        tools: Option<Vec<Value>>,
        choice: Option<Value>,
        template: Option<&ChatTemplate>,
    ) -> Result<Option<Tools>, ApiError> {
        let tools = tools.unwrap_or_default();
        let choice = read_choice(choice)?;
        if tools.is_empty() && !matches!(choice, None | Some(ToolChoice::Auto)) {
            let message = "tool_choice requires a call, but tools has no function";
            return Err(ApiError::field("tool_choice", message));
        }
        let (false, Some(choice)) = (tools.is_empty(), choice) else { return Ok(None) };
        let function = |(at, tool): (usize, &Value)| {
            let function = tool.get("function").unwrap_or(tool).clone();
            serde_json::from_value::<Function>(function)
                .map_err(|error| ApiError::field("tools", format!("tools[{at}].function: {error}")))
        };
        let functions: Vec<Function> =
            tools.iter().enumerate().map(function).collect::<Result<_, _>>()?;
        if let ToolChoice::Named(name) = &choice
            && !functions.iter().any(|function| function.name == *name)
        {
            let message =
                format!("tool_choice names the function '{name}', which tools does not have");
            return Err(ApiError::field("tool_choice", message));
        }
        let style = style_of(template.map_or("", ChatTemplate::source));
        Ok(Some(Tools { style, functions, sent: Value::from(tools), choice, parallel: true }))
    }

    /// Whether the template writes the functions into the prompt.
    fn is_known_to(template: &ChatTemplate) -> bool {
        template.source().contains("tools")
    }

    /// A request for the next message of a conversation. If there are functions, the model is told of them.
    pub(crate) fn request(
        tools: Option<&Tools>,
        mut messages: Vec<Message>,
        template: Option<&ChatTemplate>,
    ) -> Request {
        let told = tools.and_then(|tools| tools.tell(&mut messages, template));
        let request = Request::chat(messages);
        told.into_iter().fold(request, |request, tools| request.template_variable("tools", tools))
    }

    /// Tells the model of the functions: through its template, or in the system message if the template has no
    /// place for them. Returns the variables of the template.
    fn tell(&self, messages: &mut Vec<Message>, template: Option<&ChatTemplate>) -> Option<Value> {
        if template.is_some_and(Tools::is_known_to) {
            return Some(self.sent.clone());
        }
        let mut text = String::from(
            "You may call functions. Their descriptions, one on each line:\n<tools>\n",
        );
        for tool in self.sent.as_array().into_iter().flatten() {
            text.push_str(&tool.to_string());
            text.push('\n');
        }
        text.push_str(
            "</tools>\nTo call one, answer with a JSON object between these tags:\n<tool_call>\n\
             {\"name\": NAME, \"arguments\": OBJECT}\n</tool_call>",
        );
        match messages.first_mut() {
            Some(first) if first.role == "system" => {
                first.content = format!("{}\n\n{text}", first.content);
            }
            _ => messages.insert(0, Message::system(text)),
        }
        messages.iter_mut().for_each(write_calls);
        None
    }

    /// The schema of the calls that the choice requires; `None` if it requires none.
    pub(crate) fn required_schema(&self) -> Option<Value> {
        let wanted = |function: &&Function| match &self.choice {
            ToolChoice::Auto => false,
            ToolChoice::Required => true,
            ToolChoice::Named(name) => function.name == *name,
        };
        let key = if self.style == Style::Bare { "parameters" } else { "arguments" };
        let schema = |function: &Function| {
            let any = || json!({ "type": "object" });
            json!({
                "type": "object",
                "properties": {
                    "name": { "const": function.name },
                    key: function.parameters.clone().unwrap_or_else(any),
                },
                "required": ["name", key],
                "additionalProperties": false,
            })
        };
        let mut schemas: Vec<Value> = self.functions.iter().filter(wanted).map(schema).collect();
        match schemas.len() {
            0 => None,
            1 => schemas.pop(),
            _ => Some(json!({ "anyOf": schemas })),
        }
    }
}

/// Writes earlier calls and their results as text, for a template that knows neither.
fn write_calls(message: &mut Message) {
    if let Some(calls) = message.fields.remove("tool_calls") {
        for call in calls.as_array().into_iter().flatten() {
            let call = call.get("function").unwrap_or(call);
            message.content.push_str(&format!("<tool_call>\n{call}\n</tool_call>"));
        }
    }
    if message.role == "tool" {
        message.role = "user".to_owned();
        message.content = format!("<tool_response>\n{}\n</tool_response>", message.content);
    }
}

fn read_choice(choice: Option<Value>) -> Result<Option<ToolChoice>, ApiError> {
    let invalid = || {
        ApiError::field(
            "tool_choice",
            "tool_choice must be none, auto, required, or {\"type\":\"function\",\"function\":{\"name\":NAME}}",
        )
    };
    match choice {
        None => Ok(Some(ToolChoice::Auto)),
        Some(Value::String(text)) => match text.as_str() {
            "none" => Ok(None),
            "auto" => Ok(Some(ToolChoice::Auto)),
            "required" | "any" => Ok(Some(ToolChoice::Required)),
            _ => Err(invalid()),
        },
        Some(object) => {
            let name = object.pointer("/function/name").or_else(|| object.get("name"));
            let name = name.and_then(Value::as_str).ok_or_else(invalid)?;
            Ok(Some(ToolChoice::Named(name.to_owned())))
        }
    }
}

/// How a model with this template writes calls.
fn style_of(template: &str) -> Style {
    let knows = template.contains("tools");
    match knows && !template.contains("<tool_call>") {
        true => Style::Bare,
        false => Style::Tagged,
    }
}
