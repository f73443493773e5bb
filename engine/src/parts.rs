//! The parts of an answer: thoughts, text and calls of functions, separated while the answer arrives.
//!
//! [`Request::tools`] and [`Request::divided`] divide the answer of a stream: [`Token::parts`](crate::Token::parts) has the parts
//! as they arrive, and [`Summary::answer`](crate::Summary::answer) all of them. A program that has the text of an answer from
//! elsewhere divides it with an [`AnswerReader`].

mod answer;
mod calls;
mod objects;
mod part;
mod tags;
mod thoughts;

#[cfg(test)]
mod tests;

use crate::chat::{AnswerStart, ChatTemplate, ThoughtTags};
use crate::request::Request;
use crate::tools::{Style, Tools};
use calls::CallReader;
use thoughts::ThoughtReader;

pub use answer::Answer;
pub use part::Part;

/// The parts that an answer may have. That of [`default`](AnswerForm::default) is text as a whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AnswerForm {
    /// How the model writes calls; `None` if there are no functions.
    calls: Option<Style>,
    /// Whether only the first call counts.
    one_call: bool,
    /// The tags of the model's thoughts, if it has any.
    thoughts: Option<ThoughtTags>,
}

impl AnswerForm {
    /// The form of answers with these functions and this template.
    pub fn new(tools: Option<&Tools>, template: Option<&ChatTemplate>) -> AnswerForm {
        let tools = tools.filter(|tools| tools.may_call());
        AnswerForm {
            calls: tools.map(|_| Style::of(template)),
            one_call: tools.is_some_and(|tools| !tools.is_parallel()),
            thoughts: template.and_then(ChatTemplate::thought_tags),
        }
    }

    /// The request with the tags in its text also where they are control tokens.
    pub fn shown(self, mut request: Request) -> Request {
        let thoughts =
            self.thoughts.into_iter().flat_map(|tags| [tags.open.trim_end(), tags.close]);
        let calls = self.calls.filter(|style| *style == Style::Tagged);
        let calls = calls.into_iter().flat_map(|_| [calls::OPEN, calls::CLOSE]);
        request.shown.extend(thoughts.chain(calls).map(str::to_owned));
        request
    }
}

/// Divides an answer into parts as it arrives.
#[derive(Debug)]
pub struct AnswerReader {
    thoughts: Option<ThoughtReader>,
    calls: Option<CallReader>,
    one_call: bool,
    /// Calls that have begun.
    begun: usize,
}

impl AnswerReader {
    /// A reader at the start of the answers to a prompt ([`TokenStream::answer_start`](crate::TokenStream::answer_start)).
    pub fn new(form: AnswerForm, start: AnswerStart) -> AnswerReader {
        let is_within = start == AnswerStart::Within;
        AnswerReader {
            thoughts: form.thoughts.map(|tags| ThoughtReader::new(tags, start)),
            calls: form.calls.map(|style| CallReader::new(style, is_within)),
            one_call: form.one_call,
            begun: 0,
        }
    }

    /// The parts that `text` completes.
    pub fn push(&mut self, text: String) -> Vec<Part> {
        let mut parts = Vec::new();
        let text = match &mut self.thoughts {
            Some(reader) => reader.push(&text, &mut parts),
            None => text,
        };
        self.answer(text, &mut parts);
        self.counted(parts)
    }

    /// The parts at the end of the answer.
    pub fn finish(&mut self) -> Vec<Part> {
        let mut parts = Vec::new();
        if let Some(reader) = self.thoughts.take() {
            let text = reader.finish(&mut parts);
            self.answer(text, &mut parts);
        }
        parts.extend(self.calls.take().map(CallReader::finish).unwrap_or_default());
        self.counted(parts)
    }

    /// The parts without calls that are too many.
    fn counted(&mut self, mut parts: Vec<Part>) -> Vec<Part> {
        parts.retain(|part| {
            self.begun += usize::from(matches!(part, Part::Call { .. }));
            let is_of_call = !matches!(part, Part::Thought(_) | Part::Text(_));
            !(self.one_call && self.begun > 1 && is_of_call)
        });
        parts
    }

    fn answer(&mut self, text: String, parts: &mut Vec<Part>) {
        match &mut self.calls {
            Some(reader) => parts.extend(reader.push(&text)),
            None if text.is_empty() => {}
            None => parts.push(Part::Text(text)),
        }
    }

    /// The parts of a complete answer.
    pub fn whole(mut self, text: String) -> Vec<Part> {
        let mut parts = self.push(text);
        parts.extend(self.finish());
        parts
    }
}
