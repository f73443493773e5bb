//! Functions that a model may call, as clients describe them.

mod call;

use serde_json::Value;

use super::error::ApiError;
use super::fields::Fields;
pub(crate) use call::CallJson;
use lapwing_engine::Request;
use lapwing_engine::chat::{ChatTemplate, Message};
use lapwing_engine::error::ToolError;
use lapwing_engine::tools::{Tool, ToolChoice, Tools};

/// Takes the functions of a request by the names that OpenAI's interfaces use.
///
/// # Errors
/// As [`read`].
pub(crate) fn take(fields: &mut Fields) -> Result<Option<Tools>, ApiError> {
    let Some(tools) = read(fields.take("tools")?, fields.take("tool_choice")?)? else {
        return Ok(None);
    };
    Ok(Some(tools.parallel(fields.take("parallel_tool_calls")?.unwrap_or(true))))
}

/// The functions of a request; `None` without any, or if it forbids calls.
///
/// # Errors
/// When a function has no name, or the choice names none of them.
pub(crate) fn read(
    tools: Option<Vec<Value>>,
    choice: Option<Value>,
) -> Result<Option<Tools>, ApiError> {
    let Some(Choice { choice, allowed }) = read_choice(choice)? else { return Ok(None) };
    let tools = tools.unwrap_or_default();
    if tools.is_empty() && choice == ToolChoice::Auto {
        return Ok(None);
    }
    let functions = tools.into_iter().enumerate().map(|(at, tool)| read_one(at, tool));
    let functions = functions.collect::<Result<Vec<Tool>, ApiError>>()?;
    let tools = Tools::new(functions).choice(choice);
    let tools = match allowed {
        Some(names) => tools.allowed(names),
        None => tools,
    };
    match tools.check() {
        Ok(()) => Ok(Some(tools)),
        Err(error) => Err(ApiError::field("tool_choice", fault(&error))),
    }
}

/// A request for the next message of a conversation. If there are functions, the model is told of them.
pub(crate) fn request(
    tools: Option<&Tools>,
    messages: Vec<Message>,
    template: Option<&ChatTemplate>,
) -> Request {
    let request = Request::chat(messages);
    match tools {
        Some(tools) => tools.tell(request, template),
        None => request,
    }
}

/// What is wrong with the choice of functions.
fn fault(error: &ToolError) -> String {
    match error {
        ToolError::NoTool => "tool_choice requires a call, but tools has no function".to_owned(),
        ToolError::UnknownTool { name, .. } => {
            format!("tool_choice names the function '{name}', which tools does not have")
        }
        other => other.to_string(),
    }
}

fn read_one(at: usize, tool: Value) -> Result<Tool, ApiError> {
    check_type(at, &tool)?;
    Tool::from_json(tool)
        .map_err(|error| ApiError::field("tools", format!("tools[{at}].function: {error}")))
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
