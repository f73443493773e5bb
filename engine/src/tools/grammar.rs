//! The grammar of calls, as a model writes them.

mod calls;

use serde_json::json;

use super::{Form, Style, Tool, ToolChoice, Tools};
use crate::chat::ChatTemplate;
use crate::structured::{Function, Grammar};

/// A text that is no call and no list of calls of a model that answers with JSON as a whole.
const NO_OBJECT: &str = r"(?s:\s*([^\s{\[].*)?)";
/// A text that is no call of a model whose answer as a whole is a name and a line.
const NO_NAME: &str = r"(?s:\n.*)";

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
            _ if self.requires_call() => Some(self.call(style, false)),
            Some(message) => Some(Grammar::one_of([message, self.call(style, false)])),
            None if self.checks_calls() => Some(self.free(style)),
            None => None,
        }
    }

    /// Whether the calls in a text must be valid.
    fn checks_calls(&self) -> bool {
        self.allowed.is_some() || self.functions.iter().any(|function| function.is_strict)
    }

    /// An answer that is a call.
    fn call(&self, style: &Style, only_strict: bool) -> Grammar {
        let calls = self.callable(only_strict);
        let calls = calls.into_iter().map(|function| style.form.grammar(function));
        let [before, after] = style.around;
        let open = style.open.first().copied().unwrap_or_default();
        calls::sequence([
            calls::mark(&format!("{open}{before}")),
            Some(Grammar::one_of(calls)),
            calls::mark(&format!("{after}{}", style.close)),
        ])
    }

    /// Any text with valid calls.
    fn free(&self, style: &Style) -> Grammar {
        let no_call = match &style.form {
            Form::Channels => return calls::messages(self.callable(true)),
            Form::Named(_) => NO_NAME,
            _ => NO_OBJECT,
        };
        let Some(open) = style.open.first() else {
            return Grammar::one_of([self.call(style, true), Grammar::regex(no_call)]);
        };
        let calls = self.callable(true).into_iter().map(|function| style.form.grammar(function));
        let [before, after] = style.around;
        let inside = calls::sequence([calls::mark(before), Some(Grammar::one_of(calls))]);
        Grammar::free(open, inside, &format!("{after}{}", style.close))
    }

    /// The functions that the choice allows. If the model decides whether it calls one, only strict ones are checked.
    fn callable(&self, only_strict: bool) -> Vec<Function> {
        let functions = self.functions.iter().filter(|function| self.allows(function));
        let functions = functions.map(|function| Function {
            name: function.name.clone(),
            parameters: match only_strict && !function.is_strict {
                true => Some(json!({ "type": "object" })),
                false => function.parameters.clone(),
            },
        });
        functions.collect()
    }

    /// Whether the model may call a function.
    fn allows(&self, function: &Tool) -> bool {
        match &self.choice {
            ToolChoice::Named(name) => function.name == *name,
            _ => self.allowed.as_ref().is_none_or(|allowed| allowed.contains(&function.name)),
        }
    }
}
