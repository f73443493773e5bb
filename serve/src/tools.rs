//! Functions that a model may call: how it is told of them, and how it writes calls.

mod call;

use serde::Deserialize;
use serde_json::{Value, json};

use super::error::ApiError;
pub(crate) use call::{CalledFunction, ToolCall, as_object};
use lapwing_engine::Request;
use lapwing_engine::chat::{ChatTemplate, Message};

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
    pub(crate) functions: Vec<Function>,
    /// As the client sent them.
    sent: Value,
    pub(crate) choice: ToolChoice,
    /// Names of the functions that the model may call; `None` for all of them.
    allowed: Option<Vec<String>>,
    /// Whether an answer may have several calls.
    pub(crate) parallel: bool,
}

/// A function as a client describes it.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Function {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) parameters: Option<Value>,
    /// Whether calls must be valid for the parameters.
    #[serde(default)]
    strict: Option<bool>,
}

impl Function {
    /// Whether calls must be valid for the parameters, also where the model decides whether it calls.
    pub(crate) fn is_strict(&self) -> bool {
        self.strict == Some(true)
    }
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
        let tools: Vec<Value> = tools.unwrap_or_default().into_iter().map(in_chat_form).collect();
        let choice = read_choice(choice)?;
        let requires_call = |choice: &Choice| choice.choice != ToolChoice::Auto;
        if tools.is_empty() && choice.as_ref().is_some_and(requires_call) {
            let message = "tool_choice requires a call, but tools has no function";
            return Err(ApiError::field("tool_choice", message));
        }
        let (false, Some(Choice { choice, allowed })) = (tools.is_empty(), choice) else {
            return Ok(None);
        };
        let function = |(at, tool): (usize, &Value)| {
            check_type(at, tool)?;
            let function = tool.get("function").unwrap_or(tool).clone();
            serde_json::from_value::<Function>(function)
                .map_err(|error| ApiError::field("tools", format!("tools[{at}].function: {error}")))
        };
        let functions: Vec<Function> =
            tools.iter().enumerate().map(function).collect::<Result<_, _>>()?;
        let named = match &choice {
            ToolChoice::Named(name) => std::slice::from_ref(name),
            _ => allowed.as_deref().unwrap_or_default(),
        };
        let is_missing = |name: &&String| !functions.iter().any(|function| function.name == **name);
        if let Some(name) = named.iter().find(is_missing) {
            let message =
                format!("tool_choice names the function '{name}', which tools does not have");
            return Err(ApiError::field("tool_choice", message));
        }
        let style = style_of(template.map_or("", ChatTemplate::source));
        let sent = Value::from(tools);
        Ok(Some(Tools { style, functions, sent, choice, allowed, parallel: true }))
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

    /// Makes these functions strict.
    pub(crate) fn make_strict(&mut self, names: &[String]) {
        for function in self.functions.iter_mut().filter(|function| names.contains(&function.name))
        {
            function.strict = Some(true);
        }
    }

    /// Whether the answer has to be a call.
    pub(crate) fn requires_call(&self) -> bool {
        self.choice != ToolChoice::Auto
    }

    /// Whether the calls in a text must be valid.
    pub(crate) fn checks_calls(&self) -> bool {
        self.allowed.is_some() || self.functions.iter().any(Function::is_strict)
    }

    /// Whether the model may call a function.
    pub(crate) fn allows(&self, name: &str) -> bool {
        self.allowed.as_ref().is_none_or(|allowed| allowed.iter().any(|known| known == name))
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

/// Checks that a tool is a function. Tools that a provider runs, and such without parameters, are none.
fn check_type(at: usize, tool: &Value) -> Result<(), ApiError> {
    match tool.get("type").and_then(Value::as_str) {
        None | Some("function") => Ok(()),
        Some(other) => Err(ApiError::field(
            "tools",
            format!(
                "tools[{at}].type is '{other}', but this server knows only functions, which the client runs; describe \
                 the tool as a function"
            ),
        )),
    }
}

/// What a `tool_choice` says.
struct Choice {
    choice: ToolChoice,
    allowed: Option<Vec<String>>,
}

impl From<ToolChoice> for Choice {
    fn from(choice: ToolChoice) -> Choice {
        Choice { choice, allowed: None }
    }
}

/// The choice; `None` if the model may call nothing.
fn read_choice(choice: Option<Value>) -> Result<Option<Choice>, ApiError> {
    let invalid = || {
        ApiError::field(
            "tool_choice",
            "tool_choice must be none, auto, required, {\"type\":\"function\",\"function\":{\"name\":NAME}}, or \
             {\"type\":\"allowed_tools\",…}",
        )
    };
    let mode = |text: &str| match text {
        "none" => Ok(None),
        "auto" => Ok(Some(ToolChoice::Auto)),
        "required" | "any" => Ok(Some(ToolChoice::Required)),
        _ => Err(invalid()),
    };
    let name_of = |tool: &Value| {
        let name = tool.pointer("/function/name").or_else(|| tool.get("name"));
        name.and_then(Value::as_str).map(str::to_owned).ok_or_else(invalid)
    };
    let Some(choice) = choice else { return Ok(Some(ToolChoice::Auto.into())) };
    let kind = choice.get("type").and_then(Value::as_str);
    match (&choice, kind) {
        (Value::String(text), _) => Ok(mode(text)?.map(Choice::from)),
        (_, Some("allowed_tools")) => {
            let allowed = choice.get("allowed_tools").unwrap_or(&choice);
            let tools = allowed.get("tools").and_then(Value::as_array).ok_or_else(invalid)?;
            let names = tools.iter().map(name_of).collect::<Result<Vec<_>, _>>()?;
            let choice = mode(allowed.get("mode").and_then(Value::as_str).unwrap_or("auto"))?;
            Ok(choice.map(|choice| Choice { choice, allowed: Some(names) }))
        }
        (Value::Object(_), None | Some("function")) => {
            Ok(Some(ToolChoice::Named(name_of(&choice)?).into()))
        }
        _ => Err(invalid()),
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
