//! The parts of an answer: thoughts, text and calls of functions, separated while the answer arrives.
//!
//! [`Request::tools`] and [`Request::divided`] divide the answer of a stream: [`Token::parts`](crate::Token::parts) has the parts
//! as they arrive, and [`Summary::answer`](crate::Summary::answer) all of them. A program that has the text of an answer from
//! elsewhere divides it with an [`AnswerReader`].

mod answer;
mod brackets;
mod calls;
mod channels;
mod elements;
mod form;
mod literal;
mod literals;
mod marks;
mod named;
mod objects;
mod part;
mod reader;
mod tags;
mod thoughts;
mod tree;
mod wrap;
mod writer;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use crate::chat::{AnswerStart, ChatTemplate, ThoughtTags};
use crate::request::Request;
use crate::tools::{Form, Signatures, Style, Tools, Turn};
use calls::CallReader;
use channels::ChannelReader;
use marks::{BegunReader, MarkReader};
use thoughts::ThoughtReader;
use wrap::{AnswerTags, WrapReader};

pub use answer::Answer;
pub use part::Part;

/// The parts that an answer may have. That of [`default`](AnswerForm::default) is text as a whole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AnswerForm {
    /// How the model writes calls and messages, if answers are to be divided.
    style: Option<&'static Style>,
    /// The functions; `None` if the model may call none.
    calls: Option<Arc<Signatures>>,
    /// Whether only the first call counts.
    one_call: bool,
    /// The tags of the model's thoughts, if it has any.
    thoughts: Option<ThoughtTags>,
    /// The tags around its answer, if it has any.
    tags: Option<AnswerTags>,
}

impl AnswerForm {
    /// The form of answers with these functions and this template.
    pub fn new(tools: Option<&Tools>, template: Option<&ChatTemplate>) -> AnswerForm {
        let tools = tools.filter(|tools| tools.may_call());
        AnswerForm {
            style: Some(Style::of(template)),
            calls: tools.map(|tools| Arc::new(tools.signatures())),
            one_call: tools.is_some_and(|tools| !tools.is_parallel()),
            thoughts: template.and_then(ChatTemplate::thought_tags),
            tags: template.and_then(|template| AnswerTags::of(template.source())),
        }
    }

    /// The request with the tags in its text also where they are control tokens.
    pub fn shown(&self, mut request: Request) -> Request {
        let thoughts = self.thoughts.into_iter().flat_map(|tags| [tags.open, tags.close]);
        let style = self.style.filter(|_| self.calls.is_some() || self.has_channels());
        let calls = style.into_iter().flat_map(Style::texts);
        let turn = self.style.and_then(|style| style.turn.as_ref());
        let marks = turn.into_iter().flat_map(Turn::marks);
        request.shown.extend(thoughts.chain(calls).chain(marks).map(str::to_owned));
        request
    }

    /// Whether answers are messages in channels.
    fn has_channels(&self) -> bool {
        self.style.is_some_and(|style| style.form == Form::Channels)
    }
}

/// Divides an answer into parts as it arrives.
#[derive(Debug)]
pub struct AnswerReader {
    /// The reader of messages in channels, in place of all others.
    channels: Option<ChannelReader>,
    thoughts: Option<ThoughtReader>,
    wrap: Option<WrapReader>,
    recipient: Option<BegunReader>,
    marks: Option<MarkReader>,
    calls: Option<CallReader>,
    one_call: bool,
    /// Calls that have begun.
    begun: usize,
}

impl AnswerReader {
    /// A reader at the start of the answers to a prompt ([`TokenStream::answer_start`](crate::TokenStream::answer_start)).
    pub fn new(form: &AnswerForm, start: AnswerStart) -> AnswerReader {
        let is_within = start == AnswerStart::Within;
        let calls = form.style.zip(form.calls.as_ref());
        let begun = form.style.filter(|_| start == AnswerStart::Fresh);
        let channels = form.has_channels().then(|| ChannelReader::new(form.calls.is_some(), start));
        AnswerReader {
            thoughts: match channels {
                Some(_) => None,
                None => form.thoughts.map(|tags| ThoughtReader::new(tags, start)),
            },
            channels,
            wrap: form.tags.map(|tags| WrapReader::new(tags, is_within)),
            recipient: begun.and_then(|style| BegunReader::new(style, form.calls.as_ref())),
            marks: form.style.and_then(MarkReader::new),
            calls: calls
                .and_then(|(style, functions)| CallReader::new(style, functions, is_within)),
            one_call: form.one_call,
            begun: 0,
        }
    }

    /// The parts that `text` completes.
    pub fn push(&mut self, text: String) -> Vec<Part> {
        let mut parts = Vec::new();
        if let Some(channels) = &mut self.channels {
            parts = channels.push(&text);
            return self.counted(parts);
        }
        let text = match &mut self.thoughts {
            Some(reader) => reader.push(&text, &mut parts),
            None => text,
        };
        self.wrapped(text, &mut parts);
        self.counted(parts)
    }

    /// The parts at the end of the answer.
    pub fn finish(&mut self) -> Vec<Part> {
        let mut parts = Vec::new();
        parts.extend(self.channels.take().map(ChannelReader::finish).unwrap_or_default());
        if let Some(reader) = self.thoughts.take() {
            let text = reader.finish(&mut parts);
            self.wrapped(text, &mut parts);
        }
        if let Some(reader) = self.wrap.take() {
            self.addressed(reader.finish(), &mut parts);
        }
        if let Some(reader) = self.recipient.take() {
            self.marked(reader.finish(), &mut parts);
        }
        if let Some(reader) = self.marks.take() {
            self.answer(reader.finish(), &mut parts);
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

    /// Text that may have tags around it.
    fn wrapped(&mut self, text: String, parts: &mut Vec<Part>) {
        let text = match &mut self.wrap {
            Some(reader) => reader.push(&text),
            None => text,
        };
        self.addressed(text, parts);
    }

    /// Text whose begin the prompt may have.
    fn addressed(&mut self, text: String, parts: &mut Vec<Part>) {
        let text = match &mut self.recipient {
            Some(reader) => reader.push(&text),
            None => Some(text),
        };
        if let Some(text) = text {
            self.recipient = None;
            self.marked(text, parts);
        }
    }

    /// Text that may have messages in it.
    fn marked(&mut self, text: String, parts: &mut Vec<Part>) {
        let text = match &mut self.marks {
            Some(reader) => reader.push(&text),
            None => text,
        };
        self.answer(text, parts);
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
