//! The grammar of calls, as a model writes them.

use serde_json::json;

use super::{Style, Tool, ToolChoice, Tools};
use crate::chat::ChatTemplate;
use crate::structured::{CallForm, Function, Grammar, Tag};

/// The beginning and the end of a call with tags.
const OPEN: &str = "<tool_call>\n";
const CLOSE: &str = "\n</tool_call>";
/// What begins a call with tags.
const TRIGGER: &str = "<tool_call>";

/// A text that is no call and no list of calls of a model that writes them without tags.
const NO_CALL: &str = r"(?s:\s*([^\s{\[].*)?)";

impl Tools {
    /// The grammar of an answer of a model with this template: the call that the choice requires; or else `message`, or a call; or
    /// else any text in which calls are valid, if functions are strict or not all of them are allowed.
    pub fn grammar(
        &self,
        message: Option<Grammar>,
        template: Option<&ChatTemplate>,
    ) -> Option<Grammar> {
        let style = Style::of(template);
        match message {
            message if !self.may_call() => message,
            _ if self.requires_call() => Some(call(style, self.form(style, false))),
            Some(message) => Some(Grammar::one_of([message, call(style, self.form(style, false))])),
            None if self.checks_calls() => Some(self.free(style)),
            None => None,
        }
    }

    /// Whether the calls in a text must be valid.
    fn checks_calls(&self) -> bool {
        self.allowed.is_some() || self.functions.iter().any(|function| function.is_strict)
    }

    /// Any text with valid calls.
    fn free(&self, style: Style) -> Grammar {
        let calls = Grammar::calls(self.form(style, true));
        match style {
            Style::Tagged => Grammar::tagged([Tag {
                trigger: TRIGGER.to_owned(),
                begin: OPEN.to_owned(),
                inside: calls,
                end: CLOSE.to_owned(),
            }]),
            Style::Bare => Grammar::one_of([calls, Grammar::regex(NO_CALL)]),
        }
    }

    /// The calls that the choice allows. If the model decides whether it calls a function, only strict ones are checked.
    fn form(&self, style: Style, only_strict: bool) -> CallForm {
        let functions = self.functions.iter().filter(|function| self.allows(function));
        let functions = functions.map(|function| Function {
            name: function.name.clone(),
            parameters: match only_strict && !function.is_strict {
                true => Some(json!({ "type": "object" })),
                false => function.parameters.clone(),
            },
        });
        let arguments = if style == Style::Bare { "parameters" } else { "arguments" };
        CallForm { functions: functions.collect(), arguments: arguments.to_owned() }
    }

    /// Whether the model may call a function.
    fn allows(&self, function: &Tool) -> bool {
        match &self.choice {
            ToolChoice::Named(name) => function.name == *name,
            _ => self.allowed.as_ref().is_none_or(|allowed| allowed.contains(&function.name)),
        }
    }
}

fn call(style: Style, form: CallForm) -> Grammar {
    let call = Grammar::calls(form);
    match style {
        Style::Bare => call,
        Style::Tagged => {
            Grammar::sequence([Grammar::choice([OPEN]), call, Grammar::choice([CLOSE])])
        }
    }
}
