//! Writes to stdout.

use std::borrow::Cow;
use std::io::{ErrorKind, IsTerminal, Write, stdout};

use serde::Serialize;

use super::charset::shown;
use super::failure::Failure;
use super::visible::{visible, visible_json, visible_styled};
use super::wrap::{self, Wrap, stderr_columns, stdout_columns};

/// Writes styled text of this program, in the characters of the locale; without styles if stdout is not a terminal or
/// `NO_COLOR` is set. On a terminal, control characters other than styles are replaced.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let text = shown(text);
    let text = if stdout().is_terminal() { visible_styled(&text) } else { text };
    let mut out = anstream::stdout().lock();
    checked(out.write_all(text.as_bytes()).and_then(|()| out.flush()))
}

/// Writes text unchanged; on a terminal, control characters are replaced.
pub(crate) fn print_plain(text: &str) -> Result<(), Failure> {
    let out = stdout();
    let text = if out.is_terminal() { visible(text) } else { Cow::Borrowed(text) };
    let mut out = out.lock();
    checked(out.write_all(text.as_bytes()).and_then(|()| out.flush()))
}

/// Writes the text of an answer as it arrives: unchanged, but on a terminal broken between words, with control characters
/// replaced.
#[derive(Debug)]
pub(crate) struct AnswerOutput {
    /// `None` where every character counts.
    wrap: Option<Wrap>,
    /// The end of what is written.
    ends_line: bool,
}

impl AnswerOutput {
    /// Output of an answer in prose, or, if `is_exact`, of one whose lines must stay as they are.
    pub(crate) fn new(is_exact: bool) -> AnswerOutput {
        AnswerOutput { wrap: (!is_exact).then(Wrap::default), ends_line: true }
    }

    /// Writes a piece. On a terminal its last word may be held back.
    pub(crate) fn push(&mut self, piece: &str) -> Result<(), Failure> {
        match (&mut self.wrap, stdout_columns()) {
            (Some(wrap), Some(width)) => {
                let text = wrap.push(&visible(piece), width);
                self.write(&text)
            }
            _ => self.write(piece),
        }
    }

    /// Writes what is held back: the answer ends, or is interrupted.
    pub(crate) fn finish(&mut self) -> Result<(), Failure> {
        let width = stdout_columns().unwrap_or(usize::MAX);
        let rest = self.wrap.as_mut().map(|wrap| wrap.finish(width)).unwrap_or_default();
        self.write(&rest)
    }

    /// Whether the text that is written ends in the middle of a line.
    pub(crate) fn is_mid_line(&self) -> bool {
        !self.ends_line
    }

    fn write(&mut self, text: &str) -> Result<(), Failure> {
        if text.is_empty() {
            return Ok(());
        }
        self.ends_line = text.ends_with('\n');
        print_plain(text)
    }
}

/// Writes a value as one line of JSON; on a terminal, control characters are JSON escapes.
pub(crate) fn print_json(value: &impl Serialize) -> Result<(), Failure> {
    let mut line = serde_json::to_string(value)
        .map_err(|error| Failure::failed(format!("cannot write JSON: {error}")))?;
    line.push('\n');
    let out = stdout();
    let line = if out.is_terminal() { visible_json(&line) } else { Cow::Borrowed(&*line) };
    let mut out = out.lock();
    checked(out.write_all(line.as_bytes()).and_then(|()| out.flush()))
}

/// A note of this program as it is written to stderr: in the characters of the locale, and broken at the width of the
/// terminal if there is one.
pub(crate) fn for_stderr(text: &str) -> Cow<'_, str> {
    let text = shown(text);
    match stderr_columns() {
        Some(width) => Cow::Owned(wrap::note(&text, width).into_owned()),
        None => text,
    }
}

fn checked(result: std::io::Result<()>) -> Result<(), Failure> {
    result.map_err(|error| match error.kind() {
        ErrorKind::BrokenPipe => Failure::ClosedPipe,
        _ => Failure::failed(format!("cannot write to stdout: {error}")),
    })
}
