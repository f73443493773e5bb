//! Answers as messages in channels, in the Harmony format: thoughts, text and calls each have a header that says what they are.

use super::part::Part;
use super::tags::{UntilOne, until_one};
use crate::chat::AnswerStart;
use crate::tools::ToolCall;

/// Texts that end a message. The last two begin another one.
const ENDS: [&str; 5] = ["<|end|>", "<|call|>", "<|return|>", "<|start|>", "<|channel|>"];
/// Numbers of those that begin another message.
const BEGINNINGS: [usize; 2] = [3, 4];
/// The text after a header.
const MESSAGE: &str = "<|message|>";
/// Before the name of a function in a header.
const RECIPIENT: &str = "to=";

/// Divides an answer into its messages as it arrives.
#[derive(Debug)]
pub(super) struct ChannelReader {
    may_call: bool,
    /// Text that is not decided yet.
    held: String,
    state: State,
    /// Whether the message has only white space so far.
    is_blank: bool,
    has_thoughts: bool,
}

#[derive(Debug)]
enum State {
    /// Before the first message.
    Start,
    /// Between two messages.
    Between,
    Header,
    Thought,
    Text,
    Call(ToolCall),
}

impl ChannelReader {
    /// A reader of an answer that begins at `start`. If it has no functions, calls are text.
    pub(super) fn new(may_call: bool, start: AnswerStart) -> ChannelReader {
        let state = match start {
            AnswerStart::Fresh => State::Start,
            AnswerStart::Thinking => State::Thought,
            AnswerStart::Thought => State::Between,
            AnswerStart::Within => State::Text,
        };
        let is_blank = start != AnswerStart::Within;
        ChannelReader { may_call, held: String::new(), state, is_blank, has_thoughts: false }
    }

    /// The parts that `text` completes.
    pub(super) fn push(&mut self, text: &str) -> Vec<Part> {
        self.held.push_str(text);
        let mut parts = Vec::new();
        while self.step(&mut parts) {}
        parts
    }

    /// The parts at the end of the answer.
    pub(super) fn finish(mut self) -> Vec<Part> {
        let mut parts = Vec::new();
        let is_header = self.begins_with_mark();
        let held = std::mem::take(&mut self.held);
        match self.state {
            State::Call(mut call) => {
                add_arguments(&mut call, &held, &mut parts);
                parts.push(Part::CallEnd(call));
            }
            _ if held.trim().is_empty() => {}
            State::Thought => parts.push(Part::Thought(held)),
            State::Header if is_header => {}
            State::Header | State::Start | State::Between | State::Text => {
                parts.push(Part::Text(held))
            }
        }
        parts
    }

    /// One step; `false` if it needs more text.
    fn step(&mut self, parts: &mut Vec<Part>) -> bool {
        match &mut self.state {
            State::Start | State::Between => self.before(),
            State::Header => {
                if self.is_no_header() {
                    self.state = State::Text;
                    return true;
                }
                let Some(end) = self.held.find(MESSAGE) else { return false };
                let header: String = self.held.drain(..end).collect();
                self.held.drain(..MESSAGE.len());
                self.begin(&header, parts);
                true
            }
            State::Thought | State::Text => {
                let UntilOne { mut text, found } = until_one(&mut self.held, &ENDS);
                if self.is_blank {
                    text = text.trim_start().to_owned();
                }
                let space = text.split_off(text.trim_end().len());
                if found.is_none() {
                    // It belongs to the message, if that goes on.
                    self.held.insert_str(0, &space);
                }
                self.add(text, parts);
                self.end(found, parts)
            }
            State::Call(call) => {
                let UntilOne { text, found } = until_one(&mut self.held, &ENDS);
                add_arguments(call, &text, parts);
                self.end(found, parts)
            }
        }
    }

    /// Before a header, whose first word a prompt may have. An answer without one is text.
    fn before(&mut self) -> bool {
        let begin = self.held.trim_start();
        if self.begins_with_mark() || begin.starts_with(RECIPIENT) {
            self.state = State::Header;
            return true;
        }
        let mut begins = BEGINNINGS.map(|number| ENDS[number]).into_iter().chain([RECIPIENT]);
        if begins.any(|mark| mark.starts_with(begin)) {
            return false;
        }
        self.state = State::Text;
        true
    }

    /// Whether the text begins with a mark that begins a message.
    fn begins_with_mark(&self) -> bool {
        let begin = self.held.trim_start();
        BEGINNINGS.iter().any(|number| begin.starts_with(ENDS[*number]))
    }

    /// Whether a text that began as a recipient is no header: that has at most one word after it, and then a mark.
    fn is_no_header(&self) -> bool {
        let (words, rest) = self.held.split_at(self.held.find('<').unwrap_or(self.held.len()));
        let is_mark = rest.len() < 2 || rest.starts_with("<|");
        let is_text = !is_mark || words.contains('\n') || words.split_whitespace().count() > 2;
        is_text && !self.begins_with_mark()
    }

    /// Begins a message.
    fn begin(&mut self, header: &str, parts: &mut Vec<Part>) {
        self.is_blank = true;
        let recipient = header.split_once(RECIPIENT).map(|(_, rest)| {
            let end = rest.find(|char: char| char.is_whitespace() || char == '<');
            let name = &rest[..end.unwrap_or(rest.len())];
            name.strip_prefix("functions.").unwrap_or(name)
        });
        // Some headers say that a thought is for the model itself.
        let is_call = |name: &&str| self.may_call && !name.is_empty() && *name != "assistant";
        self.state = match recipient.filter(is_call) {
            Some(name) => {
                let call = ToolCall::new(name, "");
                parts.push(Part::Call { id: call.id.clone(), name: call.name.clone() });
                State::Call(call)
            }
            None if header.contains("<|channel|>analysis") => State::Thought,
            None => State::Text,
        };
    }

    /// More of a thought or of the text.
    fn add(&mut self, text: String, parts: &mut Vec<Part>) {
        if text.is_empty() {
            return;
        }
        let is_first = std::mem::take(&mut self.is_blank);
        match self.state {
            State::Thought => {
                let separate = is_first && std::mem::replace(&mut self.has_thoughts, true);
                let text = if separate { format!("\n\n{text}") } else { text };
                parts.push(Part::Thought(text));
            }
            _ => parts.push(Part::Text(text)),
        }
    }

    /// The end of a message, if it is found.
    fn end(&mut self, found: Option<usize>, parts: &mut Vec<Part>) -> bool {
        let Some(number) = found else { return false };
        let is_next = BEGINNINGS.contains(&number);
        if is_next {
            self.held.insert_str(0, ENDS[number]);
        }
        if let State::Call(call) = std::mem::replace(&mut self.state, State::Between) {
            parts.push(Part::CallEnd(call));
        }
        true
    }
}

/// More of the arguments of a call.
fn add_arguments(call: &mut ToolCall, text: &str, parts: &mut Vec<Part>) {
    if !text.is_empty() {
        call.arguments.push_str(text);
        parts.push(Part::Arguments(text.to_owned()));
    }
}
