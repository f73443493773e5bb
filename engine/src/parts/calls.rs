//! Calls of functions in the text of an answer.

use std::sync::Arc;

use super::form::{CallForm, Progress, Rest};
use super::part::Part;
use super::reader::reader;
use super::tags::{UntilOne, until, until_one};
use crate::tools::{Signatures, Style};

/// Finds calls in the text of an answer as it arrives.
#[derive(Debug)]
pub(super) struct CallReader {
    style: &'static Style,
    /// Text that is not decided yet.
    held: String,
    form: Box<dyn CallForm>,
    /// Whether the text between two tags has turned out to be no call.
    is_broken: bool,
    /// Number of the text that has begun the part with calls.
    inside: Option<usize>,
    /// White space before that text, which is a part of the answer if there is no call.
    space: String,
    /// Whether the text so far is only white space.
    is_blank: bool,
}

impl CallReader {
    /// A reader at the start of an answer, or inside of a text that the prompt begins; none for channels.
    pub(super) fn new(
        style: &'static Style,
        signatures: &Arc<Signatures>,
        is_within: bool,
    ) -> Option<CallReader> {
        Some(CallReader {
            style,
            held: String::new(),
            form: reader(style, signatures)?,
            is_broken: false,
            inside: None,
            space: String::new(),
            is_blank: !is_within,
        })
    }

    /// The parts that `text` completes.
    pub(super) fn push(&mut self, text: &str) -> Vec<Part> {
        let mut parts = Vec::new();
        self.held.push_str(text);
        match self.style.open.is_empty() {
            false => while self.tagged(&mut parts) {},
            true => self.whole(&mut parts),
        }
        parts
    }

    /// The parts at the end of the answer. A call whose arguments have not begun is text.
    pub(super) fn finish(mut self) -> Vec<Part> {
        let mut parts = Vec::new();
        let held = std::mem::take(&mut self.held);
        if self.inside.is_some() {
            // The answer may be cut off inside of the tag after a call.
            let is_closing = !held.trim().is_empty() && self.style.close.starts_with(held.trim());
            if !(self.form.is_after_call() && is_closing) {
                self.call(&held, &mut parts);
            }
            self.end_call(is_closing, "", &mut parts);
        } else if !held.is_empty() {
            parts.push(Part::Text(held));
        }
        parts
    }

    /// One step; `false` if it needs more text.
    fn tagged(&mut self, parts: &mut Vec<Part>) -> bool {
        if self.inside.is_some() {
            return self.in_call(parts);
        }
        let UntilOne { mut text, found } = until_one(&mut self.held, self.style.open);
        // White space around calls is not for the reader; whether it is around one is seen later.
        let space = text.split_off(text.trim_end().len());
        match found {
            Some(_) => self.space = space,
            None => self.held.insert_str(0, &space),
        }
        if self.is_blank {
            text = text.trim_start().to_owned();
        }
        if !text.is_empty() {
            self.is_blank = false;
            parts.push(Part::Text(text));
        }
        if self.is_blank {
            self.space.clear();
        }
        self.inside = found;
        found.is_some()
    }

    /// One step inside of a part with calls; `false` if it needs more text.
    fn in_call(&mut self, parts: &mut Vec<Part>) -> bool {
        let close = self.style.close;
        if close.is_empty() {
            let text = std::mem::take(&mut self.held);
            return self.unclosed(&text, parts);
        }
        let found = until(&mut self.held, close);
        self.call(&found.text, parts);
        if found.is_found {
            self.end_call(true, close, parts);
        }
        found.is_found
    }

    /// Text of a part that no text ends: it ends with its call, or where it is no call. `false` if it needs more text.
    fn unclosed(&mut self, text: &str, parts: &mut Vec<Part>) -> bool {
        match self.form.push(text, parts) {
            Progress::Open => false,
            Progress::AfterCall(rest) => {
                self.end_call(true, "", parts);
                self.held = rest;
                true
            }
            Progress::Broken => {
                let rest = self.form.finish(false, parts);
                match rest.has_calls {
                    // The next call may follow.
                    true => {
                        self.inside = None;
                        self.held = rest.text;
                    }
                    false => self.end_with(rest, "", parts),
                }
                // What is no call has no white space that belongs to one.
                self.is_blank = false;
                true
            }
        }
    }

    fn call(&mut self, text: &str, parts: &mut Vec<Part>) {
        match self.form.push(text, parts) {
            Progress::Open => {}
            Progress::Broken => self.is_broken = true,
            Progress::AfterCall(rest) if rest.trim().is_empty() => {}
            Progress::AfterCall(rest) => self.call(&rest, parts),
        }
    }

    /// The end of a part with calls. What is no call is text, with its tags.
    fn end_call(&mut self, is_closed: bool, close: &str, parts: &mut Vec<Part>) {
        let rest = self.form.finish(is_closed, parts);
        self.end_with(rest, close, parts);
    }

    fn end_with(&mut self, Rest { text, has_calls }: Rest, close: &str, parts: &mut Vec<Part>) {
        let open = self.inside.take().and_then(|number| self.style.open.get(number).copied());
        self.is_broken = false;
        let space = std::mem::take(&mut self.space);
        if text.trim().is_empty() {
            return;
        }
        let text = match has_calls && self.style.close.is_empty() {
            // Nothing says that it belongs to the calls.
            true => text,
            false if has_calls => format!("{}{text}{close}", open.unwrap_or_default()),
            false => format!("{space}{}{text}{close}", open.unwrap_or_default()),
        };
        parts.push(Part::Text(text));
    }

    /// An answer that is calls as a whole, or none.
    fn whole(&mut self, parts: &mut Vec<Part>) {
        let held = std::mem::take(&mut self.held);
        if self.is_blank {
            match self.form.begins(&held) {
                None => return self.held = held,
                // It may become a call until the end.
                Some(true) => self.inside = Some(0),
                Some(false) => {}
            }
            self.is_blank = false;
        }
        if self.inside.is_some() {
            self.call(&held, parts);
            if self.is_broken {
                self.end_call(false, "", parts);
            }
        } else if !held.is_empty() {
            parts.push(Part::Text(held));
        }
    }
}
