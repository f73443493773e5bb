//! The parts of an answer: thoughts, text and calls of functions, separated while the answer arrives.

mod calls;
mod objects;
mod tags;
mod thoughts;

use super::answer::Answers;
use super::tools::{CalledFunction, Style, ToolCall, Tools};
use crate::chat::ChatTemplate;
use calls::CallReader;
use thoughts::ThoughtReader;

/// A part of an answer, in the order of the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// What the model thinks before it answers.
    Thought(String),
    /// Text for the reader.
    Text(String),
    /// The beginning of a call.
    Call { id: String, name: String },
    /// More of the call's arguments, as text in JSON.
    Arguments(String),
    /// The end of the call.
    CallEnd,
}

/// The parts that an answer may have.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct AnswerForm {
    /// How the model writes calls; `None` if there are no functions.
    pub(crate) calls: Option<Style>,
    /// Whether the model may think; its template knows the tags if it does.
    thinks: bool,
}

impl AnswerForm {
    /// The form of answers with these functions and this template.
    pub(crate) fn new(tools: Option<&Tools>, template: Option<&ChatTemplate>) -> AnswerForm {
        let thinks = template.is_some_and(|template| template.source().contains(thoughts::CLOSE));
        AnswerForm { calls: tools.map(|tools| tools.style), thinks }
    }
}

/// Divides an answer into parts as it arrives.
#[derive(Debug)]
pub(crate) struct AnswerReader {
    thoughts: Option<ThoughtReader>,
    calls: Option<CallReader>,
}

impl AnswerReader {
    /// A reader at the start of the answers to a prompt.
    pub(crate) fn new(form: AnswerForm, answers: &Answers) -> AnswerReader {
        /// Enough for the tag and white space after it.
        const TAIL: usize = 16;
        let ids = answers.prompt_ids();
        let tail = || {
            let tokenizer = answers.lease().engine.tokenizer();
            tokenizer.decode(&ids[ids.len().saturating_sub(TAIL)..])
        };
        let is_begun = form.thinks && tail().trim_end().ends_with(thoughts::OPEN);
        AnswerReader::begin(form, is_begun)
    }

    fn begin(form: AnswerForm, is_begun: bool) -> AnswerReader {
        AnswerReader {
            thoughts: form.thinks.then(|| ThoughtReader::new(is_begun)),
            calls: form.calls.map(CallReader::new),
        }
    }

    /// The parts that `text` completes.
    pub(crate) fn push(&mut self, text: String) -> Vec<Part> {
        let mut parts = Vec::new();
        let text = match &mut self.thoughts {
            Some(reader) => reader.push(&text, &mut parts),
            None => text,
        };
        self.answer(text, &mut parts);
        parts
    }

    /// The parts at the end of the answer.
    pub(crate) fn finish(&mut self) -> Vec<Part> {
        let mut parts = Vec::new();
        if let Some(reader) = self.thoughts.take() {
            let text = reader.finish(&mut parts);
            self.answer(text, &mut parts);
        }
        parts.extend(self.calls.take().map(CallReader::finish).unwrap_or_default());
        parts
    }

    fn answer(&mut self, text: String, parts: &mut Vec<Part>) {
        match &mut self.calls {
            Some(reader) => parts.extend(reader.push(&text)),
            None if text.is_empty() => {}
            None => parts.push(Part::Text(text)),
        }
    }

    /// Divides a complete answer.
    pub(crate) fn divide(&mut self, text: String) -> Divided {
        let mut divided = Divided::default();
        let mut parts = self.push(text);
        parts.extend(self.finish());
        for part in parts {
            divided.add(part);
        }
        divided
    }
}

/// An answer by its parts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Divided {
    pub(crate) thoughts: String,
    pub(crate) text: String,
    pub(crate) calls: Vec<ToolCall>,
}

impl Divided {
    /// Adds a part.
    pub(crate) fn add(&mut self, part: Part) {
        match part {
            Part::Thought(text) => self.thoughts.push_str(&text),
            Part::Text(text) => self.text.push_str(&text),
            Part::Call { id, name } => {
                let function = CalledFunction { name, arguments: String::new() };
                self.calls.push(ToolCall::new(id, function));
            }
            Part::Arguments(text) => {
                if let Some(call) = self.calls.last_mut() {
                    call.function.arguments.push_str(&text);
                }
            }
            Part::CallEnd => {}
        }
    }
}

#[cfg(test)]
mod tests;
