//! Writes to stdout.

use std::borrow::Cow;
use std::io::{ErrorKind, IsTerminal, Write, stdout};

use serde::Serialize;

use super::failure::Failure;

/// Writes styled text; without styles if stdout is not a terminal or `NO_COLOR` is set.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
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

/// Writes a value as one line of JSON.
pub(crate) fn print_json(value: &impl Serialize) -> Result<(), Failure> {
    let mut line = serde_json::to_string(value)
        .map_err(|error| Failure::failed(format!("cannot write JSON: {error}")))?;
    line.push('\n');
    let mut out = stdout().lock();
    checked(out.write_all(line.as_bytes()).and_then(|()| out.flush()))
}

fn checked(result: std::io::Result<()>) -> Result<(), Failure> {
    result.map_err(|error| match error.kind() {
        ErrorKind::BrokenPipe => Failure::ClosedPipe,
        _ => Failure::failed(format!("cannot write to stdout: {error}")),
    })
}

/// Text of a model or a file with control characters replaced by their pictures, such as `␛` for ESC,
/// so that they cannot control a terminal. Line feeds and tabs are kept.
pub(crate) fn visible(text: &str) -> Cow<'_, str> {
    let steers = |c: char| c.is_control() && c != '\n' && c != '\t';
    if !text.contains(steers) {
        return Cow::Borrowed(text);
    }
    let picture = |c: char| match u32::from(c) {
        code @ 0..0x20 => char::from_u32(0x2400 + code).unwrap_or('\u{FFFD}'),
        0x7F => '␡',
        _ => '\u{FFFD}',
    };
    Cow::Owned(text.chars().map(|c| if steers(c) { picture(c) } else { c }).collect())
}

/// As [`visible`], on one line.
pub(crate) fn one_line(text: &str) -> String {
    visible(text).replace('\n', "⏎").replace('\t', "⇥")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_sequences_are_made_visible() {
        let rows = [
            ("plain äöü 🐦\n\ttab", "plain äöü 🐦\n\ttab"),
            ("\u{1b}[2Jgone", "␛[2Jgone"),
            ("a\rb\u{7}\u{7f}\u{9b}c", "a␍b␇␡\u{FFFD}c"),
        ];
        for (text, shown) in rows {
            assert_eq!(visible(text), shown);
        }
        assert_eq!(one_line("a\n\tb"), "a⏎⇥b");
    }
}
