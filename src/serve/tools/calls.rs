//! Calls of functions in the text of an answer.

use serde_json::{Map, Value};

use super::{CalledFunction, Style, ToolCall};
use crate::serve::gate::new_id;

/// A part of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// Text for the reader.
    Text(String),
    /// A complete call.
    Call(ToolCall),
}

/// The parts that `text` completes, of an answer with calls (`reader`) or without.
pub(crate) fn parts_of(reader: &mut Option<CallReader>, text: String) -> Vec<Part> {
    match reader {
        Some(reader) => reader.push(&text),
        None if text.is_empty() => Vec::new(),
        None => vec![Part::Text(text)],
    }
}

/// Finds calls in the text of an answer as it arrives.
#[derive(Debug)]
pub(crate) struct CallReader {
    style: Style,
    /// Text that is not decided yet.
    held: String,
    is_in_call: bool,
    /// Whether the text so far is only white space.
    is_blank: bool,
}

const OPEN: &str = "<tool_call>";
const CLOSE: &str = "</tool_call>";

impl CallReader {
    /// A reader at the start of an answer.
    pub(crate) fn new(style: Style) -> CallReader {
        CallReader { style, held: String::new(), is_in_call: false, is_blank: true }
    }

    /// The parts that `text` completes.
    pub(crate) fn push(&mut self, text: &str) -> Vec<Part> {
        self.held.push_str(text);
        match self.style {
            Style::Tagged => self.tagged(),
            Style::Bare => self.bare(),
        }
    }

    /// The parts at the end of the answer. A call that is not complete or not valid is text.
    pub(crate) fn finish(mut self) -> Vec<Part> {
        let held = std::mem::take(&mut self.held);
        let calls = match (self.style, self.is_in_call) {
            (Style::Tagged, false) => None,
            _ => calls_of(&held),
        };
        match calls {
            Some(calls) => calls.into_iter().map(Part::Call).collect(),
            None if self.is_in_call && self.style == Style::Tagged => {
                vec![Part::Text(format!("{OPEN}{held}"))]
            }
            None if held.is_empty() => Vec::new(),
            None => vec![Part::Text(held)],
        }
    }

    fn tagged(&mut self) -> Vec<Part> {
        let mut parts = Vec::new();
        loop {
            if self.is_in_call {
                let Some(at) = self.held.find(CLOSE) else { return parts };
                let inside: String = self.held[..at].to_owned();
                self.held.drain(..at + CLOSE.len());
                self.is_in_call = false;
                match calls_of(&inside) {
                    Some(calls) => parts.extend(calls.into_iter().map(Part::Call)),
                    None => parts.push(Part::Text(format!("{OPEN}{inside}{CLOSE}"))),
                }
                continue;
            }
            let (certain, opens) = match self.held.find(OPEN) {
                Some(at) => (at, true),
                None => (self.held.len() - partial_end(&self.held, OPEN), false),
            };
            let text: String = self.held.drain(..certain).collect();
            if opens {
                self.held.drain(..OPEN.len());
                self.is_in_call = true;
            }
            // White space around calls is not for the reader.
            let trimmed = if opens { text.trim_end() } else { &text };
            let trimmed = if self.is_blank { trimmed.trim_start() } else { trimmed };
            if !trimmed.is_empty() {
                self.is_blank = false;
                parts.push(Part::Text(trimmed.to_owned()));
            }
            if !opens {
                return parts;
            }
        }
    }

    fn bare(&mut self) -> Vec<Part> {
        let begin = self.held.trim_start();
        match begin.as_bytes().first() {
            None => Vec::new(),
            // It may become a call until the end.
            Some(b'{' | b'[') if self.is_blank => {
                self.is_in_call = true;
                Vec::new()
            }
            Some(_) => {
                self.is_blank = false;
                vec![Part::Text(std::mem::take(&mut self.held))]
            }
        }
    }
}

/// Number of bytes at the end of `text` that may be the beginning of `tag`.
fn partial_end(text: &str, tag: &str) -> usize {
    (1..tag.len()).rev().find(|length| text.ends_with(&tag[..*length])).unwrap_or(0)
}

/// The calls that `text` consists of: an object, several in a row, or a list of them.
fn calls_of(text: &str) -> Option<Vec<ToolCall>> {
    let mut calls = Vec::new();
    for value in serde_json::Deserializer::from_str(text).into_iter::<Value>() {
        match value.ok()? {
            Value::Array(objects) => {
                for object in objects {
                    calls.push(call_of(object.as_object()?)?);
                }
            }
            object => calls.push(call_of(object.as_object()?)?),
        }
    }
    (!calls.is_empty()).then_some(calls)
}

fn call_of(object: &Map<String, Value>) -> Option<ToolCall> {
    let name = object.get("name")?.as_str()?.to_owned();
    let arguments = object.get("arguments").or_else(|| object.get("parameters"));
    let arguments = match arguments {
        Some(Value::String(text)) => text.clone(),
        Some(value) => value.to_string(),
        None => "{}".to_owned(),
    };
    Some(ToolCall {
        id: new_id("call_"),
        kind: "function",
        function: CalledFunction { name, arguments },
    })
}

/// The text and the calls of a complete answer; without a style it has no calls.
pub(crate) fn separate(style: Option<Style>, text: String) -> (String, Vec<ToolCall>) {
    let Some(style) = style else { return (text, Vec::new()) };
    let mut reader = CallReader::new(style);
    let mut parts = reader.push(&text);
    parts.extend(reader.finish());
    let (mut content, mut calls) = (String::new(), Vec::new());
    for part in parts {
        match part {
            Part::Text(text) => content.push_str(&text),
            Part::Call(call) => calls.push(call),
        }
    }
    (content, calls)
}
