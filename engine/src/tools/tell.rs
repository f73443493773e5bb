//! How a model is told of functions.

use serde_json::Value;

use super::style::knows_tools;
use super::{Tool, Tools};
use crate::chat::{ChatTemplate, Message};
use crate::request::{Prompt, Request};

impl Tools {
    /// The request with the functions in its prompt: as the variable `tools` of the model's template, or in the system message if
    /// the template has no place for them. A prompt that is no conversation stays.
    pub fn tell(&self, mut request: Request, template: Option<&ChatTemplate>) -> Request {
        let Prompt::Chat(messages) = &mut request.prompt else { return request };
        if !self.may_call() {
            return request;
        }
        let described = self.functions.iter().map(|function: &Tool| &function.described);
        if template.is_some_and(knows_tools) {
            let tools: Vec<Value> = described.cloned().collect();
            return request.template_variable("tools", tools);
        }
        let mut text = String::from(
            "You may call functions. Their descriptions, one on each line:\n<tools>\n",
        );
        for tool in described {
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
        request
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
