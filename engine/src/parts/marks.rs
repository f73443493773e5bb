//! Texts around the messages of an answer, which are no part of it.

use std::sync::Arc;

use crate::tools::{Signatures, Style, Turn};

/// Takes the texts around messages off an answer as it arrives. The texts that begin calls stay.
#[derive(Debug)]
pub(super) struct MarkReader {
    marks: Vec<Mark>,
    end: &'static str,
    /// Text that is not decided yet.
    held: String,
    /// Whether the end of the answer was there, after which there is only white space.
    is_over: bool,
}

#[derive(Clone, Copy, Debug)]
struct Mark {
    text: &'static str,
    is_kept: bool,
}

impl MarkReader {
    /// A reader of answers in a style, if that has texts around messages.
    pub(super) fn new(style: &Style) -> Option<MarkReader> {
        let turn = style.turn.as_ref()?;
        let left_out = turn.marks().map(|text| Mark { text, is_kept: false });
        let kept = style.open.iter().map(|text| Mark { text, is_kept: true });
        let marks = left_out.chain(kept).collect();
        Some(MarkReader { marks, end: turn.end, held: String::new(), is_over: false })
    }

    /// The text that `text` completes.
    pub(super) fn push(&mut self, text: &str) -> String {
        self.held.push_str(text);
        self.read(false)
    }

    /// The text that was not decided at the end.
    pub(super) fn finish(mut self) -> String {
        self.read(true)
    }

    fn read(&mut self, is_last: bool) -> String {
        let mut text = String::new();
        loop {
            let rest = std::mem::take(&mut self.held);
            // Where the first mark begins that is complete, or may become so.
            let begins = |at: &usize| {
                let rest = &rest[*at..];
                let is_open = |mark: &Mark| !is_last && mark.text.starts_with(rest);
                self.marks.iter().any(|mark| rest.starts_with(mark.text) || is_open(mark))
            };
            let at = rest.char_indices().map(|(at, _)| at).find(begins).unwrap_or(rest.len());
            self.add(&rest[..at], &mut text);
            let rest = &rest[at..];
            let longer = |mark: &&Mark| mark.text.len() > rest.len() && mark.text.starts_with(rest);
            if rest.is_empty() || !is_last && self.marks.iter().any(|mark| longer(&mark)) {
                self.held = rest.to_owned();
                return text;
            }
            let complete = self.marks.iter().filter(|mark| rest.starts_with(mark.text));
            let Some(mark) = complete.max_by_key(|mark| mark.text.len()).copied() else {
                return text;
            };
            if mark.is_kept {
                self.add(mark.text, &mut text);
            }
            self.is_over |= mark.text == self.end;
            self.held = rest[mark.text.len()..].to_owned();
        }
    }

    /// Adds a part of the answer to the text.
    fn add(&mut self, part: &str, text: &mut String) {
        let part = if self.is_over { part.trim_start() } else { part };
        self.is_over &= part.is_empty();
        text.push_str(part);
    }
}

/// Gives an answer the text back that its prompt ends with, if it begins with a recipient.
#[derive(Debug)]
pub(super) struct BegunReader {
    open: &'static str,
    /// The recipient of the text of an answer, with the text after it.
    head: &'static str,
    functions: Option<Arc<Signatures>>,
    held: String,
}

impl BegunReader {
    /// A reader of answers in a style, if prompts end with the text that begins calls in it.
    pub(super) fn new(style: &Style, functions: Option<&Arc<Signatures>>) -> Option<BegunReader> {
        let Turn { text: [head, _], .. } = style.turn.as_ref().filter(|turn| turn.is_begun)?;
        let open = *style.open.first()?;
        let head = head.strip_prefix(open)?;
        Some(BegunReader { open, head, functions: functions.cloned(), held: String::new() })
    }

    /// The begin of the answer; `None` while it is not decided.
    pub(super) fn push(&mut self, text: &str) -> Option<String> {
        self.held.push_str(text);
        let is_recipient = match self.held.split_once('\n') {
            Some((name, _)) => {
                let has = |functions: &Arc<Signatures>| functions.has(name);
                self.held.starts_with(self.head) || self.functions.as_ref().is_some_and(has)
            }
            None => {
                let may_become = |functions: &Arc<Signatures>| functions.may_become(&self.held);
                let is_open = self.functions.as_ref().is_some_and(may_become);
                if self.head.starts_with(&*self.held) || is_open {
                    return None;
                }
                false
            }
        };
        let text = std::mem::take(&mut self.held);
        Some(if is_recipient { format!("{}{text}", self.open) } else { text })
    }

    /// The text that was not decided at the end.
    pub(super) fn finish(self) -> String {
        self.held
    }
}
