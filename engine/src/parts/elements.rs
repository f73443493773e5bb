//! Calls as elements with one for each argument, read while their text arrives.

use std::sync::Arc;

use super::form::{CallForm, Progress, Rest, is_name, is_of_name};
use super::literal;
use super::part::Part;
use super::tags::{Until, until, until_one};
use super::writer::CallWriter;
use crate::tools::{Elements, Kind, Signatures};

/// Reads calls as elements, and writes their arguments in JSON. Texts are handed out as they arrive, other values when they are
/// complete.
#[derive(Debug)]
pub(super) struct ElementCalls {
    form: &'static Elements,
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
    /// Between two arguments.
    Members(CallWriter),
    /// Inside the name of an argument.
    Key(CallWriter),
    /// Between a name and its value.
    Attributes(CallWriter, String),
    /// Inside a text, of which something was read if `is_begun`.
    Text { writer: CallWriter, end: String, is_begun: bool },
    /// Inside a value that may be no text.
    Value { writer: CallWriter, key: String, kind: Kind },
    /// The text is no call.
    Other,
}

impl ElementCalls {
    pub(super) fn new(form: &'static Elements, signatures: Arc<Signatures>) -> ElementCalls {
        let (held, state) = (String::new(), State::Between);
        ElementCalls { form, signatures, held, state, has_calls: false }
    }

    /// One step; `false` if it needs more text.
    fn step(&mut self, parts: &mut Vec<Part>) -> bool {
        let (state, has_moved) = match std::mem::take(&mut self.state) {
            State::Between => self.between(),
            State::Name(at) => self.name(at, parts),
            State::Members(writer) => self.members(writer, parts),
            State::Key(writer) => {
                let Until { text, is_found } = whole_until(&mut self.held, self.form.key_end);
                match is_found {
                    true => (State::Attributes(writer, text.trim().to_owned()), true),
                    false => (State::Key(writer), false),
                }
            }
            State::Attributes(writer, key) => self.attributes(writer, key, parts),
            State::Text { writer, end, is_begun } => self.text(writer, end, is_begun, parts),
            State::Value { writer, key, kind } => self.value(writer, key, kind, parts),
            State::Other => (State::Other, false),
        };
        self.state = state;
        has_moved
    }

    fn between(&self) -> (State, bool) {
        let begin = self.form.begin;
        match self.held.find(begin) {
            Some(at) => (State::Name(at + begin.len()), true),
            None => (State::Between, false),
        }
    }

    /// Reads a name: up to the text after it, or where nothing but white space ends it, to the first argument.
    fn name(&mut self, at: usize, parts: &mut Vec<Part>) -> (State, bool) {
        let (text, end) = (&self.held[at..], self.form.name_end.trim());
        let key = text.find(self.form.key).map(|at| (at, at));
        let line =
            text.trim_start().find('\n').map(|end| end + text.len() - text.trim_start().len());
        let found = match end {
            "" => key.into_iter().chain(line.map(|at| (at, at))).min(),
            end => text.find(end).map(|at| (at, at + end.len())),
        };
        let Some((name_end, after)) = found else {
            // It cannot become a name any more.
            let mut begin = text.trim().chars().take_while(|char| *char != '<' && *char != '"');
            let is_open = begin.all(is_of_name);
            return if is_open { (State::Name(at), false) } else { (State::Other, true) };
        };
        let name = text[..name_end].trim();
        if !is_name(name) {
            return (State::Other, true);
        }
        let writer = CallWriter::begin(name, parts);
        self.has_calls = true;
        self.held.drain(..at + after);
        (State::Members(writer), true)
    }

    /// Between two arguments: the next one, or the end.
    fn members(&mut self, writer: CallWriter, parts: &mut Vec<Part>) -> (State, bool) {
        let end = self.form.end.trim();
        let tags = if end.is_empty() { vec![self.form.key] } else { vec![self.form.key, end] };
        match until_one(&mut self.held, &tags).found {
            None => (State::Members(writer), false),
            Some(0) => (State::Key(writer), true),
            Some(_) => {
                writer.end(true, parts);
                (State::Between, true)
            }
        }
    }

    /// Reads up to a value.
    fn attributes(
        &mut self,
        mut writer: CallWriter,
        key: String,
        parts: &mut Vec<Part>,
    ) -> (State, bool) {
        let Until { text, is_found } = whole_until(&mut self.held, self.form.value.trim());
        if !is_found {
            return (State::Attributes(writer, key), false);
        }
        let [of_texts, of_others] = self.form.attributes.map(str::trim);
        let kind = match text.trim() {
            "" => self.signatures.kind(writer.name(), &key),
            text if text == of_texts => Kind::Text,
            text if fits(text, of_others) => Kind::Other,
            _ => self.signatures.kind(writer.name(), &key),
        };
        if kind != Kind::Text {
            return (State::Value { writer, key, kind }, true);
        }
        writer.member(&key, parts);
        writer.write("\"", parts);
        let end = self.form.value_end.trim().to_owned();
        (State::Text { writer, end, is_begun: false }, true)
    }

    /// Reads a text.
    fn text(
        &mut self,
        mut writer: CallWriter,
        end: String,
        is_begun: bool,
        parts: &mut Vec<Part>,
    ) -> (State, bool) {
        if !is_begun {
            return match self.text_begin() {
                None => (State::Text { writer, end, is_begun }, false),
                Some(quote) => {
                    let end = format!("{quote}{end}");
                    (State::Text { writer, end, is_begun: true }, true)
                }
            };
        }
        let Until { mut text, is_found } = until(&mut self.held, &end);
        if self.has_lines() && text.ends_with('\n') {
            // The last line feed belongs to the text after the value, if that follows.
            text.pop();
            if !is_found {
                self.held.insert(0, '\n');
            }
        }
        writer.text(&text, parts);
        match is_found {
            true => {
                writer.write("\"", parts);
                (State::Members(writer), true)
            }
            false => (State::Text { writer, end, is_begun }, false),
        }
    }

    /// Takes what stands before a text, and returns the text after it; `None` if it is not known yet.
    fn text_begin(&mut self) -> Option<&'static str> {
        if self.has_lines() {
            if self.held.chars().next()? == '\n' {
                self.held.remove(0);
            }
            return Some("");
        }
        let Some([open, close]) = self.form.quotes else { return Some("") };
        if self.held.starts_with(open) {
            self.held.drain(..open.len());
            return Some(close);
        }
        (!open.starts_with(&*self.held)).then_some("")
    }

    /// Reads a value that may be no text.
    fn value(
        &mut self,
        mut writer: CallWriter,
        key: String,
        kind: Kind,
        parts: &mut Vec<Part>,
    ) -> (State, bool) {
        let end = self.form.value_end.trim();
        let Until { text, is_found } = whole_until(&mut self.held, end);
        if !is_found {
            return (State::Value { writer, key, kind }, false);
        }
        let text = match self.form.quotes {
            Some([open, close]) => {
                let quoted = text.strip_prefix(open).and_then(|text| text.strip_suffix(close));
                quoted.unwrap_or(&*text)
            }
            None if self.has_lines() => {
                let text = text.strip_prefix('\n').unwrap_or(&*text);
                text.strip_suffix('\n').unwrap_or(text)
            }
            None => &*text,
        };
        writer.member(&key, parts);
        writer.write(&literal::of_kind(text, kind), parts);
        (State::Members(writer), true)
    }

    /// Whether values have lines of their own.
    fn has_lines(&self) -> bool {
        self.form.value.ends_with('\n')
    }
}

impl CallForm for ElementCalls {
    fn push(&mut self, text: &str, parts: &mut Vec<Part>) -> Progress {
        self.held.push_str(text);
        while self.step(parts) {}
        match self.state {
            State::Other => Progress::Broken,
            _ => Progress::Open,
        }
    }

    fn finish(&mut self, is_closed: bool, parts: &mut Vec<Part>) -> Rest {
        if let State::Name(at) = self.state
            && is_closed
            && self.form.name_end.trim().is_empty()
            && self.signatures.has(self.held[at..].trim())
        {
            // A call without arguments ends with its name.
            let writer = CallWriter::begin(self.held[at..].trim(), parts);
            self.has_calls = true;
            self.state = State::Members(writer);
        }
        let has_calls = std::mem::take(&mut self.has_calls);
        let mut text = std::mem::take(&mut self.held);
        match std::mem::take(&mut self.state) {
            State::Between | State::Name(_) | State::Other => return Rest { text, has_calls },
            State::Members(writer) => writer.end(is_closed, parts),
            State::Key(writer) | State::Attributes(writer, _) | State::Value { writer, .. } => {
                writer.end(false, parts);
            }
            State::Text { mut writer, .. } => {
                writer.text(&text, parts);
                if is_closed {
                    writer.write("\"", parts);
                }
                writer.end(is_closed, parts);
            }
        }
        text.clear();
        Rest { text, has_calls }
    }

    fn is_after_call(&self) -> bool {
        self.has_calls && matches!(self.state, State::Between | State::Members(_))
    }

    fn begins(&self, _answer: &str) -> Option<bool> {
        Some(false)
    }
}

/// Whether a text is this one, in which `{}` stands for anything.
fn fits(text: &str, pattern: &str) -> bool {
    match pattern.split_once("{}") {
        Some((before, after)) => {
            text.strip_prefix(before).is_some_and(|rest| rest.ends_with(after))
        }
        None => text == pattern,
    }
}

/// As [`until`], but the text stays until it is complete.
fn whole_until(held: &mut String, tag: &str) -> Until {
    match held.contains(tag) {
        true => until(held, tag),
        false => Until { text: String::new(), is_found: false },
    }
}
