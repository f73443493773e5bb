//! Calls as a name and a JSON object, read while their text arrives.

use std::sync::Arc;

use super::brackets::Brackets;
use super::form::{CallForm, Progress, Rest, is_name, is_of_name};
use super::part::Part;
use crate::tools::{Named, Signatures, ToolCall};

/// Reads calls of which each is a name and an object with the arguments. These are handed out as they arrive.
#[derive(Debug)]
pub(super) struct NamedCalls {
    form: &'static Named,
    signatures: Arc<Signatures>,
    /// Text that no part has yet.
    held: String,
    state: State,
    has_calls: bool,
}

#[derive(Debug, Default)]
enum State {
    /// Before the text that begins a call.
    #[default]
    Between,
    /// Inside the name, which begins here in the text.
    Name(usize),
    /// Before the brace of the arguments.
    Before {
        name: String,
        at: usize,
    },
    Arguments(ToolCall, Brackets),
    /// Before the text that ends a call.
    After,
    /// The text is no call.
    Other,
}

impl NamedCalls {
    pub(super) fn new(form: &'static Named, signatures: Arc<Signatures>) -> NamedCalls {
        NamedCalls {
            form,
            signatures,
            held: String::new(),
            state: State::Between,
            has_calls: false,
        }
    }

    /// One step; `false` if it needs more text.
    fn step(&mut self, parts: &mut Vec<Part>) -> bool {
        match &mut self.state {
            State::Between => {
                let Some(at) = self.held.find(self.form.begin) else { return false };
                self.state = State::Name(at + self.form.begin.len());
                true
            }
            State::Name(at) => {
                let at = *at;
                self.name(at)
            }
            State::Before { name, at } => {
                let arguments = self.held[*at..].trim_start();
                match arguments.as_bytes().first() {
                    None => return false,
                    Some(b'{') => {}
                    Some(_) => {
                        self.state = State::Other;
                        return true;
                    }
                }
                let call = ToolCall::new(std::mem::take(name), "");
                self.held = arguments.to_owned();
                parts.push(Part::Call { id: call.id.clone(), name: call.name.clone() });
                self.has_calls = true;
                self.state = State::Arguments(call, Brackets::default());
                true
            }
            State::Arguments(call, brackets) => {
                let end = brackets.close(&self.held);
                let text: String = self.held.drain(..end.unwrap_or(self.held.len())).collect();
                if !text.is_empty() {
                    call.arguments.push_str(&text);
                    parts.push(Part::Arguments(text));
                }
                if end.is_some() {
                    parts.push(Part::CallEnd(std::mem::take(call)));
                    self.state = State::After;
                }
                end.is_some()
            }
            State::After => {
                let end = self.form.end.trim();
                match self.held.find(end) {
                    // The style has no closing text, so the caller decides what the following text is.
                    Some(at) if !end.is_empty() => {
                        self.held.drain(..at + end.len());
                        self.state = State::Between;
                        true
                    }
                    _ => false,
                }
            }
            State::Other => false,
        }
    }

    /// Reads a name up to the text after it. Returns whether it is known what the text is.
    fn name(&mut self, at: usize) -> bool {
        let Named { id_end, within: [prefix, suffix], skipped, between, .. } = self.form;
        // Without an id, the text after it is empty, and found at once.
        let Some(id) = self.held[at..].find(id_end) else { return false };
        let text = self.held[at + id + id_end.len()..].trim_start();
        let name = &text[..text.find(|char| !is_of_name(char)).unwrap_or(text.len())];
        let rest = &text[name.len()..];
        let is_skipping = !skipped.is_empty() && rest.starts_with(skipped);
        let (name, after) = match rest.find(between) {
            Some(0) => (name, &rest[between.len()..]),
            Some(at) if is_skipping => (name, &rest[at + between.len()..]),
            _ if is_skipping || skipped.starts_with(rest) || between.starts_with(rest) => {
                return false;
            }
            _ => {
                self.state = State::Other;
                return true;
            }
        };
        let name = name.strip_prefix(prefix).unwrap_or(name);
        let name = match name.rsplit_once(':') {
            Some((name, number)) if !suffix.is_empty() && number.parse::<u32>().is_ok() => name,
            _ => name,
        };
        let at = self.held.len() - after.len();
        self.state = match is_name(name) {
            true => State::Before { name: name.to_owned(), at },
            false => State::Other,
        };
        true
    }
}

impl CallForm for NamedCalls {
    fn push(&mut self, text: &str, parts: &mut Vec<Part>) -> Progress {
        self.held.push_str(text);
        while self.step(parts) {}
        match self.state {
            State::Other => Progress::Broken,
            State::After if self.form.end.is_empty() => {
                self.state = State::Between;
                Progress::AfterCall(std::mem::take(&mut self.held))
            }
            _ => Progress::Open,
        }
    }

    fn finish(&mut self, _is_closed: bool, parts: &mut Vec<Part>) -> Rest {
        let has_calls = std::mem::take(&mut self.has_calls);
        let mut text = std::mem::take(&mut self.held);
        match std::mem::take(&mut self.state) {
            State::Arguments(call, _) => parts.push(Part::CallEnd(call)),
            State::After => text.clear(),
            State::Between | State::Name(_) | State::Before { .. } | State::Other => {}
        }
        Rest { text, has_calls }
    }

    fn is_after_call(&self) -> bool {
        let is_between = matches!(self.state, State::Between | State::After);
        self.has_calls && is_between && self.held.trim().is_empty()
    }

    fn begins(&self, answer: &str) -> Option<bool> {
        let end = answer.find(|char| !is_of_name(char)).unwrap_or(answer.len());
        let (name, rest) = answer.split_at(end);
        match rest.is_empty() {
            true if self.signatures.may_become(name) => None,
            true => Some(false),
            false => Some(self.signatures.has(name) && rest.starts_with(self.form.between)),
        }
    }
}
