//! Calls as JSON objects, read while their text arrives.

use serde_json::Value;

use super::part::Part;
use crate::tools::ToolCall;

/// Reads objects with a name and arguments: several in a row, or a list of them. The arguments of an object
/// are handed out as they arrive, once its name is known.
#[derive(Debug, Default)]
pub(super) struct CallObjects {
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
    /// Inside the arguments of a call.
    Arguments(ToolCall, Brackets),
    /// After the arguments, inside their object.
    Tail(Brackets),
    /// The text is no call.
    Other,
}

impl CallObjects {
    /// Adds to `parts` what `text` completes. Returns whether the text can still be calls; otherwise `held` has
    /// what no part has.
    pub(super) fn push(&mut self, text: &str, parts: &mut Vec<Part>) -> bool {
        self.held.push_str(text);
        while self.step(parts) {}
        !matches!(self.state, State::Other)
    }

    /// Whether the text so far is one call or several, and nothing else.
    pub(super) fn is_after_call(&self) -> bool {
        self.has_calls && matches!(self.state, State::Between) && self.held.trim().is_empty()
    }

    /// The end of the text. Returns the text that no part has.
    pub(super) fn finish(&mut self, parts: &mut Vec<Part>) -> String {
        match std::mem::take(&mut self.state) {
            State::Arguments(call, _) => parts.push(Part::CallEnd(call)),
            State::Between if self.has_calls => self.held.clear(),
            State::Tail(_) => self.held.clear(),
            State::Between | State::Head | State::Other => {}
        }
        self.has_calls = false;
        std::mem::take(&mut self.held)
    }

    /// One step; `false` if it needs more text.
    fn step(&mut self, parts: &mut Vec<Part>) -> bool {
        match &mut self.state {
            State::Between => {
                let between = |c: char| c.is_whitespace() || "[],".contains(c);
                self.state = match self.held.trim_start_matches(between).chars().next() {
                    None => return false,
                    Some('{') => State::Head,
                    Some(_) => State::Other,
                };
                true
            }
            State::Head => self.head(parts),
            State::Arguments(call, brackets) => {
                let end = brackets.close(&self.held);
                let text: String = self.held.drain(..end.unwrap_or(self.held.len())).collect();
                if !text.is_empty() {
                    call.arguments.push_str(&text);
                    parts.push(Part::Arguments(text));
                }
                if end.is_some() {
                    parts.push(Part::CallEnd(std::mem::take(call)));
                    self.state = State::Tail(Brackets { depth: 1, ..Brackets::default() });
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
        let (name, arguments, end) = match head(&self.held[start..]) {
            Head::Incomplete => return false,
            Head::Other => {
                self.state = State::Other;
                return false;
            }
            Head::Whole { name, arguments, end } => (name, Some(arguments), end),
            Head::Begun { name, end } => (name, None, end),
        };
        self.has_calls = true;
        self.held.drain(..start + end);
        let call = ToolCall::new(name, arguments.clone().unwrap_or_default());
        parts.push(Part::Call { id: call.id.clone(), name: call.name.clone() });
        self.state = match arguments {
            Some(arguments) => {
                parts.extend([Part::Arguments(arguments), Part::CallEnd(call)]);
                State::Between
            }
            None => State::Arguments(call, Brackets::default()),
        };
        true
    }
}

/// What the beginning of an object says.
enum Head {
    /// More text is needed.
    Incomplete,
    /// It is no call.
    Other,
    /// The arguments begin at `end`.
    Begun { name: String, end: usize },
    /// The object ends at `end`.
    Whole { name: String, arguments: String, end: usize },
}

/// Reads an object from its brace on.
fn head(text: &str) -> Head {
    let bytes = text.as_bytes();
    let skip = |at: usize, also: &str| {
        let blank = |c: char| c.is_whitespace() || also.contains(c);
        text.len() - text[at..].trim_start_matches(blank).len()
    };
    let (mut at, mut name, mut arguments) = (1, None, None);
    loop {
        at = skip(at, ",");
        match bytes.get(at) {
            None => return Head::Incomplete,
            Some(b'"') => {}
            Some(b'}') => {
                let arguments = arguments.unwrap_or_else(|| "{}".to_owned());
                return name.map_or(Head::Other, |name| Head::Whole {
                    name,
                    arguments,
                    end: at + 1,
                });
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
        let is_arguments = key == "arguments" || key == "parameters";
        if is_arguments
            && bytes.get(at) == Some(&b'{')
            && let Some(name) = name
        {
            return Head::Begun { name, end: at };
        }
        let Some(end) = value_end(text, at) else { return Head::Incomplete };
        match serde_json::from_str(&text[at..end]) {
            Err(_) => return Head::Other,
            Ok(Value::String(text)) if key == "name" => name = Some(text),
            Ok(_) if key == "name" => return Head::Other,
            // Some models write the object as a text.
            Ok(Value::String(text)) if is_arguments => arguments = Some(text),
            Ok(_) if is_arguments => arguments = Some(text[at..end].to_owned()),
            Ok(_) => {}
        }
        at = end;
    }
}

/// The end of the JSON value that begins at `at`; `None` if it is not complete.
fn value_end(text: &str, at: usize) -> Option<usize> {
    let rest = &text[at..];
    let end = match rest.as_bytes().first()? {
        b'"' | b'{' | b'[' => Brackets::default().close(rest),
        _ => rest.find(|c: char| c.is_whitespace() || ",]}".contains(c)),
    };
    end.map(|end| at + end)
}

/// Open brackets and quotes of a JSON value.
#[derive(Debug, Default)]
struct Brackets {
    depth: usize,
    is_text: bool,
    is_escaped: bool,
}

impl Brackets {
    /// The end of the value in `text`, which follows the text of earlier calls.
    fn close(&mut self, text: &str) -> Option<usize> {
        for (at, byte) in text.bytes().enumerate() {
            match byte {
                _ if self.is_escaped => self.is_escaped = false,
                b'\\' => self.is_escaped = self.is_text,
                b'"' => self.is_text = !self.is_text,
                _ if self.is_text => continue,
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => self.depth = self.depth.saturating_sub(1),
                _ => continue,
            }
            if self.depth == 0 && !self.is_text {
                return Some(at + 1);
            }
        }
        None
    }
}
