//! The grammar of calls, as a model writes them.

mod calls;
mod trees;

use serde_json::json;

use super::{Form, Style, Tool, ToolChoice, Tools, Turn};
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
        let message = message.map(|message| style.message(message));
        match message {
            message if !self.may_call() => message,
            _ if self.requires_call() => Some(self.call(style, false)),
            Some(message) => Some(Grammar::one_of([message, self.call(style, false)])),
            None if self.checks_calls() => Some(self.free(style)),
            None => None,
        }
    }

    /// The grammar of an answer whose text follows `text`. A model with this template may write what stands before the text of its
    /// messages; the parts of the answer do not have it.
    pub fn message(text: Grammar, template: Option<&ChatTemplate>) -> Grammar {
        Style::of(template).message(text)
    }

    /// Whether the calls in a text must be valid.
    fn checks_calls(&self) -> bool {
        self.allowed.is_some() || self.functions.iter().any(|function| function.is_strict)
    }

    /// An answer that is a call.
    fn call(&self, style: &Style, only_strict: bool) -> Grammar {
        let calls = self.callable(only_strict);
        let calls = calls.into_iter().map(|function| style.form.grammar(function));
        let calls = Grammar::one_of(calls);
        calls::sequence(style.before_calls().into_iter().chain([Some(style.part(calls, true))]))
    }

    /// Any text with valid calls.
    fn free(&self, style: &Style) -> Grammar {
        let no_call = match (&style.form, &style.turn) {
            (Form::Channels, Some(turn)) => {
                return calls::messages(self.callable(true), turn.start);
            }
            (Form::Named(_), _) => NO_NAME,
            _ => NO_OBJECT,
        };
        let Some(open) = style.open.first() else {
            return Grammar::one_of([self.call(style, true), Grammar::regex(no_call)]);
        };
        let calls = self.callable(true).into_iter().map(|function| style.form.grammar(function));
        let calls = Grammar::one_of(calls);
        let [before, after] = style.around;
        let inside = calls::sequence([calls::mark(before), Some(calls.clone())]);
        let free = |inside| Grammar::free(open, inside, &format!("{after}{}", style.close));
        match &style.turn {
            Some(turn) if turn.is_begun => {
                let next = calls::sequence([calls::mark(open), Some(inside.clone())]);
                let called = [inside.clone(), Grammar::repeated(next)].map(Some);
                let text = [calls::mark(style.text_head(turn)), Some(free(inside))];
                Grammar::one_of([calls::sequence(called), calls::sequence(text)])
            }
            Some(turn) if !turn.text[0].is_empty() => {
                let start = || calls::mark(turn.start).map(Grammar::optional);
                let head = calls::mark(turn.text[0]).map(Grammar::optional);
                let text = calls::sequence([start(), head, Some(Grammar::until(turn.text[1]))]);
                let several = [calls.clone(), Grammar::repeated(calls)].map(Some);
                let part = style.part(calls::sequence(several), false);
                let called = calls::sequence([start(), Some(part)]);
                calls::sequence([text, called].map(Grammar::optional).map(Some))
            }
            _ => free(inside),
        }
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

impl Style {
    /// The text before the text of an answer, without what prompts end with.
    fn text_head(&self, turn: &Turn) -> &'static str {
        let open = self.open.first().copied().unwrap_or_default();
        let begun = if turn.is_begun { open } else { "" };
        turn.text[0].strip_prefix(begun).unwrap_or(turn.text[0])
    }

    /// An answer whose text follows `text`, after what may stand before it. That may be in the prompt, too.
    fn message(&self, text: Grammar) -> Grammar {
        let Some(turn) = &self.turn else { return text };
        let Some(head) = calls::mark(self.text_head(turn)) else { return text };
        let start = calls::mark(turn.start).map(Grammar::optional);
        let head = Grammar::optional(calls::sequence([start, Some(head)]));
        calls::sequence([Some(head), Some(text)])
    }

    /// What may stand before calls. After thoughts, another message begins; an answer that begins at once has the start of one in its
    /// prompt. In an answer of one message, an empty text comes first, whose begin may be in the prompt, too.
    fn before_calls(&self) -> Vec<Option<Grammar>> {
        let Some(turn) = &self.turn else { return Vec::new() };
        let marks = match turn.start {
            "" if !turn.is_begun && !turn.text[1].is_empty() => turn.text.to_vec(),
            start => vec![start],
        };
        marks.into_iter().map(|mark| calls::mark(mark).map(Grammar::optional)).collect()
    }

    /// A part with calls, at the begin of an answer or later.
    fn part(&self, calls: Grammar, is_first: bool) -> Grammar {
        let [before, after] = self.around;
        let is_begun = is_first && self.turn.as_ref().is_some_and(|turn| turn.is_begun);
        let open = self.open.first().filter(|_| !is_begun).copied().unwrap_or_default();
        calls::sequence([
            calls::mark(&format!("{open}{before}")),
            Some(calls),
            calls::mark(&format!("{after}{}", self.close)),
        ])
    }
}
