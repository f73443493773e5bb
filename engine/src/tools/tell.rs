//! How a model is told of functions.

use serde_json::{Value, json};

use super::split::split;
use super::style::{Called, TAGGED};
use super::{Style, Tool, Tools};
use crate::chat::{ChatTemplate, Message, Shows};
use crate::request::{Prompt, Request};

/// The system message of a template that reads functions from it, if the conversation has none.
const SYSTEM: &str = "You are a helpful assistant with some tools.";

impl Tools {
    /// The request with the functions in its prompt: where the model's template expects them, or in the system message if the
    /// template has no place for them. Earlier calls and results that the template leaves out are written as text, as the model
    /// writes calls. A prompt that is no conversation stays.
    pub fn tell(&self, mut request: Request, template: Option<&ChatTemplate>) -> Request {
        let Prompt::Chat(messages) = &mut request.prompt else { return request };
        if !self.may_call() {
            return request;
        }
        let style = Style::of(template);
        let shows = template.map_or(Shows::TEXT, ChatTemplate::shows);
        let knows_tools = |template: &ChatTemplate| {
            template.variable_of_tools().is_some() || template.reads_tools_of_message()
        };
        // A template that writes any role writes results, but no model was trained with them.
        let written = match template.is_some_and(knows_tools) {
            true => shows,
            false => Shows { system: shows.system, ..Shows::TEXT },
        };
        if written.calls && !written.several {
            *messages = split(std::mem::take(messages));
        }
        write_calls(messages, style, written);
        let described = self.functions.iter().map(|function: &Tool| &function.described);
        let Some(template) = template else {
            add_system(messages, &self.text(style), shows);
            return request;
        };
        if let Some(name) = template.variable_of_tools() {
            let tools: Vec<Value> = described.cloned().collect();
            return request.template_variable(name, ChatTemplate::value_of_tools(name, tools));
        }
        if template.reads_tools_of_message() {
            let functions: Vec<&Value> =
                described.map(|tool| tool.get("function").unwrap_or(tool)).collect();
            if messages.first().is_none_or(|first| first.role != "system") {
                messages.insert(0, Message::system(SYSTEM));
            }
            let text = json!(functions).to_string();
            messages[0].fields.insert("tools".to_owned(), text.into());
        } else {
            add_system(messages, &self.text(style), shows);
        }
        request
    }

    /// The functions, and how to call one, as text.
    fn text(&self, style: &Style) -> String {
        let mut text = String::from(
            "You may call functions. Their descriptions, one on each line:\n<tools>\n",
        );
        for function in &self.functions {
            text.push_str(&function.described.to_string());
            text.push('\n');
        }
        text.push_str("</tools>\nTo call one, answer ");
        if *style == TAGGED {
            text.push_str(
                "with a JSON object between these tags:\n<tool_call>\n{\"name\": NAME, \"arguments\": OBJECT}\n</tool_call>",
            );
        } else {
            let arguments = json!({ "ARGUMENT": "VALUE" });
            let example = style.write(&[Called { name: "NAME", arguments: &arguments }]);
            text.push_str(&format!("in this form:\n{example}"));
        }
        text
    }
}

/// Adds a text to the system message, or to the first message of a template that shows none.
fn add_system(messages: &mut Vec<Message>, text: &str, shows: Shows) {
    match messages.first_mut() {
        Some(first) if first.role == "system" => {
            first.content = format!("{}\n\n{text}", first.content);
        }
        Some(first) if !shows.system => first.content = format!("{text}\n\n{}", first.content),
        _ => messages.insert(0, Message::system(text)),
    }
}

/// Writes earlier calls and their results as text where a template leaves them out. Results in a row are one message.
fn write_calls(messages: &mut Vec<Message>, style: &Style, shows: Shows) {
    let mut written: Vec<Message> = Vec::with_capacity(messages.len());
    let mut is_after_result = false;
    for mut message in messages.drain(..) {
        if !shows.calls
            && let Some(calls) = message.fields.remove("tool_calls")
        {
            message.content.push_str(&text_of(&calls, style));
        }
        let is_result = message.role == "tool" && !shows.results;
        if is_result {
            message.role = "user".to_owned();
            message.content = format!("<tool_response>\n{}\n</tool_response>", message.content);
        }
        match written.last_mut() {
            Some(last) if is_result && is_after_result => {
                last.content = format!("{}\n{}", last.content, message.content);
            }
            _ => written.push(message),
        }
        is_after_result = is_result;
    }
    *messages = written;
}

/// Calls in the form of messages as text.
fn text_of(calls: &Value, style: &Style) -> String {
    let call = |call: &Value| {
        let call = call.get("function").unwrap_or(call);
        let name = call.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
        (name, call.get("arguments").cloned().unwrap_or_else(|| json!({})))
    };
    let calls: Vec<(String, Value)> = calls.as_array().into_iter().flatten().map(call).collect();
    let calls: Vec<Called<'_>> =
        calls.iter().map(|(name, arguments)| Called { name, arguments }).collect();
    style.write(&calls)
}
