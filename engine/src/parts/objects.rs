//! Calls as JSON objects, read while their text arrives.

use serde_json::Value;

use super::brackets::{Brackets, value_end};
use super::form::{CallForm, Progress, Rest};
use super::part::Part;
use crate::tools::{Objects, ToolCall};

/// Reads objects with a name and arguments: several in a row, or a list of them. The arguments of an object
/// are handed out as they arrive, once its name is known.
#[derive(Debug)]
pub(super) struct ObjectCalls {
    /// Whether the name of an object's member is that of the function.
    is_keyed: bool,
    /// Text that no part has yet.
    held: String,
    state: State,
    has_calls: bool,
}

#[derive(Debug, Default)]
enum State {
    /// Before an object.
    #[default]
    Between,
    /// Inside an object whose name or arguments have not begun.
    Head,
    /// Inside the arguments of a call, which are so many objects deep.
    Arguments { call: ToolCall, brackets: Brackets, depth: usize },
    /// After the arguments, inside their object.
    Tail(Brackets),
    /// The text is no call.
    Other,
}

impl ObjectCalls {
    pub(super) fn new(form: &Objects) -> ObjectCalls {
        ObjectCalls {
            is_keyed: form.name.is_none(),
            held: String::new(),
            state: State::Between,
            has_calls: false,
        }
    }

    /// One step; `false` if it needs more text.
    fn step(&mut self, parts: &mut Vec<Part>) -> bool {
        match &mut self.state {
            State::Between => {
                self.state = match self.held.trim_start_matches(is_between).chars().next() {
                    None => return false,
                    Some('{') => State::Head,
                    Some(_) => State::Other,
                };
                true
            }
            State::Head => self.head(parts),
            State::Arguments { call, brackets, depth } => {
                let end = brackets.close(&self.held);
                let text: String = self.held.drain(..end.unwrap_or(self.held.len())).collect();
                if !text.is_empty() {
                    call.arguments.push_str(&text);
                    parts.push(Part::Arguments(text));
                }
                if end.is_some() {
                    parts.push(Part::CallEnd(std::mem::take(call)));
                    self.state = State::Tail(Brackets::within(*depth));
                }
                end.is_some()
            }
            State::Tail(brackets) => {
                let end = brackets.close(&self.held);
                self.held.drain(..end.unwrap_or(self.held.len()));
                if end.is_some() {
                    self.state = State::Between;
                }
                end.is_some()
            }
            State::Other => false,
        }
    }

    fn head(&mut self, parts: &mut Vec<Part>) -> bool {
        // The state says that there is one.
        let start = self.held.find('{').unwrap_or_default();
        let head = match head(&self.held[start..], self.is_keyed) {
            Head::Incomplete => return false,
            Head::Other => {
                self.state = State::Other;
                return true;
            }
            Head::Known(head) => head,
        };
        self.has_calls = true;
        self.held.drain(..start + head.end);
        let call = ToolCall::new(head.name, head.arguments.clone().unwrap_or_default());
        parts.push(Part::Call { id: call.id.clone(), name: call.name.clone() });
        self.state = match head.arguments {
            Some(arguments) => {
                parts.extend([Part::Arguments(arguments), Part::CallEnd(call)]);
                match head.depth {
                    0 => State::Between,
                    depth => State::Tail(Brackets::within(depth)),
                }
            }
            None => State::Arguments { call, brackets: Brackets::default(), depth: head.depth },
        };
        true
    }
}

impl CallForm for ObjectCalls {
    fn push(&mut self, text: &str, parts: &mut Vec<Part>) -> Progress {
        self.held.push_str(text);
        while self.step(parts) {}
        match self.state {
            State::Other => Progress::Broken,
            _ => Progress::Open,
        }
    }

    fn finish(&mut self, _is_closed: bool, parts: &mut Vec<Part>) -> Rest {
        let has_calls = std::mem::take(&mut self.has_calls);
        match std::mem::take(&mut self.state) {
            State::Arguments { call, .. } => parts.push(Part::CallEnd(call)),
            State::Between if has_calls => self.held.clear(),
            State::Tail(_) => self.held.clear(),
            State::Other if has_calls => {
                let rest = self.held.trim_start_matches(is_between).len();
                self.held.drain(..self.held.len() - rest);
            }
            State::Between | State::Head | State::Other => {}
        }
        Rest { text: std::mem::take(&mut self.held), has_calls }
    }

    fn is_after_call(&self) -> bool {
        let is_blank = self.held.trim_start_matches(is_between).is_empty();
        self.has_calls && matches!(self.state, State::Between) && is_blank
    }

    fn begins(&self, answer: &str) -> Option<bool> {
        Some(matches!(answer.trim_start().as_bytes().first()?, b'{' | b'['))
    }
}

/// Whether a character may stand between objects.
fn is_between(char: char) -> bool {
    char.is_whitespace() || "[],".contains(char)
}

/// What the beginning of an object says.
enum Head {
    /// More text is needed.
    Incomplete,
    /// It is no call.
    Other,
    Known(KnownHead),
}

/// The name of a call, and where the arguments begin or the object ends.
struct KnownHead {
    name: String,
    /// The arguments, if the object ends after them.
    arguments: Option<String>,
    end: usize,
    /// Objects that are still open at the end.
    depth: usize,
}

/// Reads an object from its brace on.
fn head(text: &str, is_keyed: bool) -> Head {
    let bytes = text.as_bytes();
    let skip = |at: usize, also: &str| {
        let blank = |c: char| c.is_whitespace() || also.contains(c);
        text.len() - text[at..].trim_start_matches(blank).len()
    };
    let (mut at, mut depth, mut name, mut arguments) = (1, 1, None, None);
    loop {
        at = skip(at, ",");
        match bytes.get(at) {
            None => return Head::Incomplete,
            Some(b'"') => {}
            Some(b'}') => {
                let Some(name) = name else { return Head::Other };
                let arguments = Some(arguments.unwrap_or_else(|| "{}".to_owned()));
                return Head::Known(KnownHead { name, arguments, end: at + 1, depth: depth - 1 });
            }
            Some(_) => return Head::Other,
        }
        let Some(end) = value_end(text, at) else { return Head::Incomplete };
        let Ok(key) = serde_json::from_str::<String>(&text[at..end]) else { return Head::Other };
        at = skip(end, "");
        match bytes.get(at) {
            None => return Head::Incomplete,
            Some(b':') => at = skip(at + 1, ""),
            Some(_) => return Head::Other,
        }
        let is_object = bytes.get(at) == Some(&b'{');
        let is_arguments = is_keyed || key == "arguments" || key == "parameters";
        if is_keyed && bytes.get(at).is_some() {
            name = is_object.then_some(key.clone());
        }
        if is_arguments
            && is_object
            && let Some(name) = name
        {
            return Head::Known(KnownHead { name, arguments: None, end: at, depth });
        }
        if key == "function" && is_object {
            // The call is the value of this member.
            (at, depth) = (at + 1, depth + 1);
            continue;
        }
        let Some(end) = value_end(text, at) else { return Head::Incomplete };
        let is_name = key == "name" || key == "tool_name";
        match serde_json::from_str(&text[at..end]) {
            Err(_) => return Head::Other,
            Ok(Value::String(text)) if is_name => name = Some(text),
            Ok(_) if is_name => return Head::Other,
            // Some models write the object as a text.
            Ok(Value::String(text)) if is_arguments => arguments = Some(text),
            Ok(_) if is_arguments => arguments = Some(text[at..end].to_owned()),
            Ok(_) => {}
        }
        at = end;
    }
}
