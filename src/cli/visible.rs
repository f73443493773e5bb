//! Replaces the control characters that a terminal would execute.

use std::borrow::Cow;

/// Text from a model or a file, with control characters replaced by their symbols, such as `␛` for
/// ESC. Line feeds and tabs stay.
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
    fn escape_sequences_do_not_reach_the_terminal() {
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
