//! What a template shows of a conversation with functions.
//!
//! Templates differ in what they leave out: some have no place for earlier calls, drop messages with results, or refuse a system
//! message. What they show is tried with small conversations, once for each template.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{ChatOptions, ChatTemplate, Message};

/// Names of variables in which templates expect descriptions of functions.
const VARIABLES: [&str; 3] = ["tools", "xml_tools", TEXT];
/// The variable that is a text: JSON.
const TEXT: &str = "functions";
/// How templates read descriptions that are a member of the system message.
const MEMBERS: [&str; 2] = ["message['tools']", "message.tools"];
/// Texts that stand in no template.
const ASKED: &str = "lapwing-asked";
const ANSWERED: &str = "lapwing-answered";
const ARGUMENT: &str = "lapwing-argument";
const SECOND: &str = "lapwing-second";
const RESULT: &str = "lapwing-result";

/// What a template shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shows {
    /// Messages with the role `system`.
    pub(crate) system: bool,
    /// Calls of earlier messages.
    pub(crate) calls: bool,
    /// Calls after the first of a message.
    pub(crate) several: bool,
    /// Messages with the role `tool`.
    pub(crate) results: bool,
}

impl Shows {
    /// What is shown of messages whose text is all that counts.
    pub(crate) const TEXT: Shows =
        Shows { system: true, calls: false, several: true, results: false };
}

impl ChatTemplate {
    /// The variable in which the template expects descriptions of functions, if it has one.
    pub(crate) fn variable_of_tools(&self) -> Option<&'static str> {
        VARIABLES.into_iter().find(|name| self.reads(name))
    }

    /// The value of a [variable](Self::variable_of_tools) with descriptions of functions: a list, or its functions as text in JSON.
    pub(crate) fn value_of_tools(variable: &str, tools: Vec<Value>) -> Value {
        match variable {
            TEXT => {
                let function = |tool: &Value| tool.get("function").unwrap_or(tool).clone();
                let functions: Vec<Value> = tools.iter().map(function).collect();
                format!("{:#}", Value::from(functions)).into()
            }
            _ => tools.into(),
        }
    }

    /// Whether the template reads descriptions of functions as text in JSON from the system message.
    pub(crate) fn reads_tools_of_message(&self) -> bool {
        MEMBERS.iter().any(|member| self.source().contains(member))
    }

    /// What it shows of a conversation with functions.
    pub(crate) fn shows(&self) -> Shows {
        *self.shows.get_or_init(|| self.tried())
    }

    fn tried(&self) -> Shows {
        let function = json!({
            "name": "try", "description": "Tries.",
            "parameters": { "type": "object", "properties": { "key": { "type": "string", "description": "A key." } } },
        });
        let tools = || vec![json!({ "type": "function", "function": function })];
        let variables =
            VARIABLES.iter().map(|name| ((*name).to_owned(), Self::value_of_tools(name, tools())));
        let options = ChatOptions {
            add_generation_prompt: true,
            variables: variables.collect::<BTreeMap<_, _>>(),
            ..ChatOptions::default()
        };
        let shows = |messages: &[Message], text: &str| {
            self.render_with(messages, &options).map(|prompt| prompt.contains(text)).ok()
        };
        let user = Message::user(ASKED);
        let call = |id: &str, argument: &str| {
            let arguments = json!({ "key": argument });
            json!({ "id": id, "type": "function", "function": { "name": "try", "arguments": arguments } })
        };
        let [id, second] = ["000000000", "000000001"];
        let result =
            |id: &str| Message::new("tool", RESULT).field("tool_call_id", id).field("name", "try");
        let calls = vec![call(id, ARGUMENT), call(second, SECOND)];
        let both = Message::assistant("").field("tool_calls", calls);
        let call = Message::assistant("").field("tool_calls", vec![call(id, ARGUMENT)]);
        // A template that is of no use for the simplest conversation says nothing here.
        if shows(std::slice::from_ref(&user), ASKED) != Some(true) {
            return Shows { calls: true, results: true, ..Shows::TEXT };
        }
        let with_call = [user.clone(), call.clone()];
        let with_result = [user.clone(), call, result(id)];
        let with_both = [user.clone(), both, result(id), result(second)];
        let plain = [user.clone(), Message::assistant(ANSWERED), result(id)];
        Shows {
            system: shows(&[Message::system(RESULT), user], RESULT) == Some(true),
            calls: shows(&with_result, ARGUMENT).or_else(|| shows(&with_call, ARGUMENT))
                == Some(true),
            several: shows(&with_both, SECOND) == Some(true),
            results: shows(&with_result, RESULT).or_else(|| shows(&plain, RESULT)) == Some(true),
        }
    }
}
