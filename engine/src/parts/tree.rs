//! Calls as elements whose values may be elements, read while their text arrives.

use std::sync::Arc;

use super::form::{CallForm, Progress, Rest, is_name, is_of_name};
use super::literal;
use super::part::Part;
use super::tags::{Until, until};
use super::writer::CallWriter;
use crate::tools::{Kind, Place, Signatures, Tree};

/// Reads calls as trees of elements, and writes their arguments in JSON. Texts are handed out as they arrive, other values when they
/// are complete. The schema says what a value is that has no elements in it.
#[derive(Debug)]
pub(super) struct TreeCalls {
    form: &'static Tree,
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
    /// Inside a call, in these elements.
    Inside(CallWriter, Vec<Level>),
    /// The text is no call.
    Other,
}

/// An element that has begun.
#[derive(Debug)]
struct Level {
    name: String,
    value: LevelValue,
}

#[derive(Debug, PartialEq, Eq)]
enum LevelValue {
    /// Nothing but white space has been read, so that it may become any of the others.
    Open,
    Text,
    Object {
        has_members: bool,
    },
    List {
        has_items: bool,
    },
}

/// A tag, and the text before it.
struct Tag {
    text: String,
    name: String,
    closes: bool,
    /// Where the tag begins and ends in the text.
    place: [usize; 2],
}

impl TreeCalls {
    pub(super) fn new(form: &'static Tree, signatures: Arc<Signatures>) -> TreeCalls {
        let (held, state) = (String::new(), State::Between);
        TreeCalls { form, signatures, held, state, has_calls: false }
    }

    /// One step; `false` if it needs more text.
    fn step(&mut self, parts: &mut Vec<Part>) -> bool {
        let (state, has_moved) = match std::mem::take(&mut self.state) {
            State::Between => match self.held.find(self.form.begin) {
                Some(at) => (State::Name(at + self.form.begin.len()), true),
                None => (State::Between, false),
            },
            State::Name(at) => self.name(at, parts),
            State::Inside(writer, levels) => self.inside(writer, levels, parts),
            State::Other => (State::Other, false),
        };
        self.state = state;
        has_moved
    }

    fn name(&mut self, at: usize, parts: &mut Vec<Part>) -> (State, bool) {
        let text = &self.held[at..];
        let Some(end) = text.find(self.form.name_end) else {
            let mut begin = text.chars().take_while(|char| *char != '"');
            let is_open = begin.all(is_of_name);
            return if is_open { (State::Name(at), false) } else { (State::Other, true) };
        };
        let name = &text[..end];
        if !is_name(name) {
            return (State::Other, true);
        }
        let writer = CallWriter::begin(name, parts);
        self.has_calls = true;
        self.held.drain(..at + end + self.form.name_end.len());
        (State::Inside(writer, Vec::new()), true)
    }

    /// A step inside of a call.
    fn inside(
        &mut self,
        mut writer: CallWriter,
        mut levels: Vec<Level>,
        parts: &mut Vec<Part>,
    ) -> (State, bool) {
        let has_moved = match levels.last().map(|level| &level.value) {
            Some(LevelValue::Text) => self.text(&mut writer, &mut levels, parts),
            Some(LevelValue::Open) => self.value(&mut writer, &mut levels, parts),
            _ => {
                let Some(tag) = self.tag() else { return (State::Inside(writer, levels), false) };
                self.held.drain(..tag.place[1]);
                if !tag.closes {
                    begin(tag.name, &mut writer, &mut levels, parts);
                } else if levels.is_empty() || self.form.end == self.form.close(&tag.name) {
                    while levels.pop().is_some_and(|level| close(&level, &mut writer, parts)) {}
                    writer.end(true, parts);
                    return (State::Between, true);
                } else if let Some(level) = levels.pop() {
                    close(&level, &mut writer, parts);
                }
                true
            }
        };
        (State::Inside(writer, levels), has_moved)
    }

    /// More of a text.
    fn text(
        &mut self,
        writer: &mut CallWriter,
        levels: &mut Vec<Level>,
        parts: &mut Vec<Part>,
    ) -> bool {
        let name = levels.last().map_or("", |level| &level.name);
        let Until { text, is_found } = until(&mut self.held, &self.form.close(name));
        writer.text(&text, parts);
        if is_found {
            writer.write("\"", parts);
            levels.pop();
        }
        is_found
    }

    /// The begin of a value, or all of one without elements.
    fn value(
        &mut self,
        writer: &mut CallWriter,
        levels: &mut Vec<Level>,
        parts: &mut Vec<Part>,
    ) -> bool {
        let place = self.place(writer.name(), levels);
        let kind = place.kind();
        if kind == Kind::Text {
            writer.write("\"", parts);
            set(levels, LevelValue::Text);
            return true;
        }
        let Some(tag) = self.tag() else { return false };
        if tag.closes {
            writer.write(&without_elements(&tag.text, place), parts);
            levels.pop();
            self.held.drain(..tag.place[1]);
            return true;
        }
        let is_list = tag.name == self.form.item && !place.is("object");
        self.held.drain(..tag.place[0]);
        writer.write(if is_list { "[" } else { "{" }, parts);
        set(
            levels,
            match is_list {
                true => LevelValue::List { has_items: false },
                false => LevelValue::Object { has_members: false },
            },
        );
        true
    }

    /// Where the innermost of these elements is in the arguments.
    fn place(&self, function: &str, levels: &[Level]) -> Place<'_> {
        let mut place = self.signatures.arguments(function);
        let mut is_list = false;
        for level in levels {
            place = if is_list { place.item() } else { place.member(&level.name) };
            is_list = matches!(level.value, LevelValue::List { .. });
        }
        place
    }

    /// The next tag, if it is complete.
    fn tag(&self) -> Option<Tag> {
        let at = self.held.find(self.form.tag)?;
        let rest = &self.held[at + self.form.tag.len()..];
        let end = rest.find('>')?;
        let name = rest[..end].trim_start_matches('<');
        let closes = name.starts_with('/');
        let place = [at, at + self.form.tag.len() + end + 1];
        let name = name.trim_start_matches('/').to_owned();
        Some(Tag { text: self.held[..at].to_owned(), name, closes, place })
    }
}

/// The JSON of a value without elements.
fn without_elements(text: &str, place: Place<'_>) -> String {
    match text.trim().is_empty() {
        true if place.is("array") => "[]".to_owned(),
        true if place.is("object") => "{}".to_owned(),
        _ => literal::of_kind(text, place.kind()),
    }
}

/// Begins an element of this name.
fn begin(name: String, writer: &mut CallWriter, levels: &mut Vec<Level>, parts: &mut Vec<Part>) {
    let comma = |is_after: bool| if is_after { "," } else { "" };
    match levels.last_mut().map(|level| &mut level.value) {
        Some(LevelValue::Object { has_members }) => {
            let comma = comma(std::mem::replace(has_members, true));
            writer.write(&format!("{comma}{}:", serde_json::Value::from(&*name)), parts);
        }
        Some(LevelValue::List { has_items }) => {
            writer.write(comma(std::mem::replace(has_items, true)), parts);
        }
        _ => writer.member(&name, parts),
    }
    levels.push(Level { name, value: LevelValue::Open });
}

/// Ends an object or a list.
fn close(level: &Level, writer: &mut CallWriter, parts: &mut Vec<Part>) -> bool {
    match level.value {
        LevelValue::Object { .. } => writer.write("}", parts),
        LevelValue::List { .. } => writer.write("]", parts),
        LevelValue::Open | LevelValue::Text => {}
    }
    true
}

fn set(levels: &mut [Level], value: LevelValue) {
    if let Some(level) = levels.last_mut() {
        level.value = value;
    }
}

impl CallForm for TreeCalls {
    fn push(&mut self, text: &str, parts: &mut Vec<Part>) -> Progress {
        self.held.push_str(text);
        while self.step(parts) {}
        match self.state {
            State::Other => Progress::Broken,
            _ => Progress::Open,
        }
    }

    fn finish(&mut self, is_closed: bool, parts: &mut Vec<Part>) -> Rest {
        let has_calls = std::mem::take(&mut self.has_calls);
        let mut text = std::mem::take(&mut self.held);
        if let State::Inside(mut writer, levels) = std::mem::take(&mut self.state) {
            if levels.last().is_some_and(|level| level.value == LevelValue::Text) {
                writer.text(&text, parts);
            }
            writer.end(is_closed && levels.is_empty(), parts);
            text.clear();
        }
        Rest { text, has_calls }
    }

    fn is_after_call(&self) -> bool {
        self.has_calls && matches!(self.state, State::Between)
    }

    fn begins(&self, _answer: &str) -> Option<bool> {
        Some(false)
    }
}
