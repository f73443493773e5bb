//! Calls of functions in the text of an answer.

use super::objects::CallObjects;
use super::part::Part;
use super::tags::{Until, until};
use crate::tools::Style;

pub(super) const OPEN: &str = "<tool_call>";
pub(super) const CLOSE: &str = "</tool_call>";

/// Finds calls in the text of an answer as it arrives.
#[derive(Debug)]
pub(super) struct CallReader {
    style: Style,
    /// Text that is not decided yet.
    held: String,
    objects: CallObjects,
    /// Whether the text between two tags has turned out to be no call.
    is_broken: bool,
    is_in_call: bool,
    /// Whether the text so far is only white space.
    is_blank: bool,
}

impl CallReader {
    /// A reader at the start of an answer, or inside of a text that the prompt begins.
    pub(super) fn new(style: Style, is_within: bool) -> CallReader {
        CallReader {
            style,
            held: String::new(),
            objects: CallObjects::default(),
            is_broken: false,
            is_in_call: false,
            is_blank: !is_within,
        }
    }

    /// The parts that `text` completes.
    pub(super) fn push(&mut self, text: &str) -> Vec<Part> {
        let mut parts = Vec::new();
        self.held.push_str(text);
        match self.style {
            Style::Tagged => while self.tagged(&mut parts) {},
            Style::Bare => self.bare(&mut parts),
        }
        parts
    }

    /// The parts at the end of the answer. A call whose arguments have not begun is text.
    pub(super) fn finish(mut self) -> Vec<Part> {
        let mut parts = Vec::new();
        let held = std::mem::take(&mut self.held);
        if self.is_in_call {
            // The answer may be cut off inside of the tag after a call.
            if !(self.objects.is_after_call() && CLOSE.starts_with(held.trim())) {
                self.call(&held, &mut parts);
            }
            self.end_call("", &mut parts);
        } else if !held.is_empty() {
            parts.push(Part::Text(held));
        }
        parts
    }

    /// One step; `false` if it needs more text.
    fn tagged(&mut self, parts: &mut Vec<Part>) -> bool {
        let tag = if self.is_in_call { CLOSE } else { OPEN };
        let Until { mut text, is_found } = until(&mut self.held, tag);
        if self.is_in_call {
            self.call(&text, parts);
            if is_found {
                self.end_call(CLOSE, parts);
            }
        } else {
            // White space around calls is not for the reader; whether it is around one is seen later.
            let space = text.split_off(text.trim_end().len());
            if !is_found {
                self.held.insert_str(0, &space);
            }
            if self.is_blank {
                text = text.trim_start().to_owned();
            }
            if !text.is_empty() {
                self.is_blank = false;
                parts.push(Part::Text(text));
            }
            self.is_in_call = is_found;
        }
        is_found
    }

    fn call(&mut self, text: &str, parts: &mut Vec<Part>) {
        if !self.objects.push(text, parts) {
            self.is_broken = true;
        }
    }

    /// The end of a call. What is none is text, with its tags.
    fn end_call(&mut self, close: &str, parts: &mut Vec<Part>) {
        let rest = self.objects.finish(parts);
        self.is_in_call = false;
        self.is_broken = false;
        if rest.trim().is_empty() {
            return;
        }
        let open = if self.style == Style::Tagged { OPEN } else { "" };
        parts.push(Part::Text(format!("{open}{rest}{close}")));
    }

    fn bare(&mut self, parts: &mut Vec<Part>) {
        let held = std::mem::take(&mut self.held);
        if self.is_blank {
            match held.trim_start().as_bytes().first() {
                None => return self.held = held,
                // It may become a call until the end.
                Some(b'{' | b'[') => self.is_in_call = true,
                Some(_) => {}
            }
            self.is_blank = false;
        }
        if self.is_in_call {
            self.call(&held, parts);
            if self.is_broken {
                self.end_call("", parts);
            }
        } else if !held.is_empty() {
            parts.push(Part::Text(held));
        }
    }
}
