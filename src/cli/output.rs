//! Writes to stdout.

use std::borrow::Cow;
use std::io::{ErrorKind, IsTerminal, Write, stdout};

use serde::Serialize;

use super::failure::Failure;
use super::visible::{visible, visible_json, visible_styled};

/// Writes styled text; without styles if stdout is not a terminal or `NO_COLOR` is set. On a
/// terminal, control characters other than styles are replaced.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let text = if stdout().is_terminal() { visible_styled(text) } else { Cow::Borrowed(text) };
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

fn checked(result: std::io::Result<()>) -> Result<(), Failure> {
    result.map_err(|error| match error.kind() {
        ErrorKind::BrokenPipe => Failure::ClosedPipe,
        _ => Failure::failed(format!("cannot write to stdout: {error}")),
    })
}
