//! Calls as a name and literals in brackets, read while their text arrives.

use std::sync::Arc;

use super::form::{CallForm, Progress, Rest, is_name, is_of_name};
use super::literal;
use super::part::Part;
use super::writer::CallWriter;
use crate::tools::{Kind, Literals, Signatures};

/// Reads calls such as `f(a=1)`, and writes their arguments in JSON, each when it is complete.
#[derive(Debug)]
pub(super) struct LiteralCalls {
    form: &'static Literals,
    signatures: Arc<Signatures>,
    /// Text that no part has yet.
    held: String,
    state: State,
    has_calls: bool,
}

#[derive(Debug, Default)]
enum State {
    /// Before a name.
    #[default]
    Between,
    /// Inside of the brackets, before the end of an argument.
    Argument { writer: CallWriter, scan: Scan, position: usize },
    /// The text is no call.
    Other,
}

/// How far an argument is read.
#[derive(Debug, Default)]
struct Scan {
    at: usize,
    depth: usize,
    /// What ends the text that is being read.
    quote: Option<String>,
}

/// Where an argument ends.
enum End {
    Incomplete,
    /// Another one follows.
    Comma(usize),
    /// It is the last one.
    Bracket(usize),
}

impl LiteralCalls {
    pub(super) fn new(form: &'static Literals, signatures: Arc<Signatures>) -> LiteralCalls {
        let (held, state) = (String::new(), State::Between);
        LiteralCalls { form, signatures, held, state, has_calls: false }
    }

    /// One step; `false` if it needs more text.
    fn step(&mut self, parts: &mut Vec<Part>) -> bool {
        match std::mem::take(&mut self.state) {
            State::Between => self.between(parts),
            State::Other => {
                self.state = State::Other;
                false
            }
            State::Argument { writer, mut scan, position } => {
                let (end, is_last) = match scan.end(&self.held, self.form) {
                    End::Incomplete => {
                        self.state = State::Argument { writer, scan, position };
                        return false;
                    }
                    End::Comma(end) => (end, false),
                    End::Bracket(end) => (end, true),
                };
                let mut writer = writer;
                let argument: String = self.held.drain(..=end).collect();
                let is_read = self.argument(&argument[..end], position, &mut writer, parts);
                self.state = match (is_last, is_read) {
                    (true, is_read) => {
                        writer.end(is_read, parts);
                        State::Between
                    }
                    (false, true) => {
                        State::Argument { writer, scan: Scan::default(), position: position + 1 }
                    }
                    (false, false) => {
                        writer.end(false, parts);
                        State::Other
                    }
                };
                true
            }
        }
    }

    /// Reads a name up to its bracket.
    fn between(&mut self, parts: &mut Vec<Part>) -> bool {
        let text = self
            .held
            .trim_start_matches(|char: char| char.is_whitespace() || "[],`;".contains(char));
        // The name of the language of a block is no call.
        let text = text.strip_prefix("python\n").unwrap_or(text);
        let Some(text) = text.strip_prefix(self.form.begin) else {
            if !self.form.begin.starts_with(text) {
                self.state = State::Other;
                return true;
            }
            return false;
        };
        let name = &text[..text.find(|char| !is_of_name(char)).unwrap_or(text.len())];
        let Some(bracket) = text[name.len()..].chars().next() else { return false };
        if bracket == '\n' && name == "python" {
            return false;
        }
        if bracket != self.form.brackets[0] || !is_name(name) {
            self.state = State::Other;
            return true;
        }
        let writer = CallWriter::begin(name, parts);
        let after = self.held.len() - (text.len() - name.len() - 1);
        self.held.drain(..after);
        self.has_calls = true;
        self.state = State::Argument { writer, scan: Scan::default(), position: 0 };
        true
    }

    /// Writes an argument. Returns whether it is one.
    fn argument(
        &self,
        text: &str,
        position: usize,
        writer: &mut CallWriter,
        parts: &mut Vec<Part>,
    ) -> bool {
        let text = text.trim();
        if text.is_empty() {
            return true;
        }
        let quote = self.form.quote;
        let named =
            text.split_once(self.form.assign).map(|(name, value)| (unquoted(name, quote), value));
        let (name, value) = match named.filter(|(name, _)| is_name(name)) {
            Some(named) => named,
            None => match self.signatures.at(writer.name(), position) {
                Some(name) => (name, text),
                None => return false,
            },
        };
        let kind = self.signatures.kind(writer.name(), name);
        let json = literal::to_json(value, quote);
        let json = match json {
            // A text without its quotes.
            Some(json) if kind == Kind::Text && !json.starts_with('"') => {
                literal::of_kind(value.trim(), kind)
            }
            Some(json) => json,
            None => literal::of_kind(value.trim(), Kind::Text),
        };
        writer.member(name, parts);
        writer.write(&json, parts);
        true
    }
}

/// A name without the quotes around it.
fn unquoted<'a>(name: &'a str, quote: Option<&str>) -> &'a str {
    let name = name.trim();
    let marks = quote.into_iter().chain(["\"", "'"]);
    let mut inner = marks.filter_map(|mark| name.strip_prefix(mark)?.strip_suffix(mark));
    inner.next().unwrap_or(name)
}

impl Scan {
    /// The end of the argument that `text` begins with.
    fn end(&mut self, text: &str, form: &Literals) -> End {
        while let Some(char) = text[self.at..].chars().next() {
            let rest = &text[self.at..];
            if let Some(quote) = &self.quote {
                if rest.starts_with(&**quote) {
                    self.at += quote.len();
                    self.quote = None;
                } else if quote.starts_with(rest) {
                    return End::Incomplete;
                } else if char == '\\' && quote.len() == 1 {
                    let Some(escaped) = rest[1..].chars().next() else { return End::Incomplete };
                    self.at += 1 + escaped.len_utf8();
                } else {
                    self.at += char.len_utf8();
                }
                continue;
            }
            if let Some(quote) = form.quote {
                if rest.starts_with(quote) {
                    self.at += quote.len();
                    self.quote = Some(quote.to_owned());
                    continue;
                }
                if quote.starts_with(rest) {
                    return End::Incomplete;
                }
            }
            match char {
                '"' | '\'' => self.quote = Some(char.to_string()),
                ',' if self.depth == 0 => return End::Comma(self.at),
                char if self.depth == 0 && char == form.brackets[1] => {
                    return End::Bracket(self.at);
                }
                '[' | '{' | '(' => self.depth += 1,
                ']' | '}' | ')' => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
            self.at += char.len_utf8();
        }
        End::Incomplete
    }
}

impl CallForm for LiteralCalls {
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
        let mut text = std::mem::take(&mut self.held);
        match std::mem::take(&mut self.state) {
            State::Argument { writer, .. } => {
                writer.end(false, parts);
                text.clear();
            }
            State::Between if has_calls => text.clear(),
            State::Between | State::Other => {}
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
