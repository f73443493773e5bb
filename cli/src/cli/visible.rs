//! Replaces the characters that steer a terminal instead of being shown.

use std::borrow::Cow;

use super::charset::is_ascii;

/// Whether a terminal acts on the character: a control character other than line feed and tab (C0,
/// DEL, and C1 such as the one-byte form of `ESC [`), or one that reorders the text after it (the
/// embeddings, overrides and isolates of Unicode Standard Annex #9).
fn steers(c: char) -> bool {
    (c.is_control() && c != '\n' && c != '\t')
        || matches!(c, '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
}

/// Appends what stands for a steering character: `␛` for ESC, `\x9b` or `\u{202e}` for those without
/// a symbol of their own.
fn push_shown(shown: &mut String, c: char) {
    match u32::from(c) {
        code @ (0..0x20 | 0x7F) if is_ascii() => shown.push_str(&format!("\\x{code:02x}")),
        code @ 0..0x20 => shown.push(char::from_u32(0x2400 + code).unwrap_or('\u{FFFD}')),
        0x7F => shown.push('␡'),
        code @ 0x80..0x100 => shown.push_str(&format!("\\x{code:02x}")),
        code => shown.push_str(&format!("\\u{{{code:x}}}")),
    }
}

/// Text from a model or a file, with the characters that steer a terminal shown as symbols or
/// escapes. Line feeds and tabs stay.
pub(crate) fn visible(text: &str) -> Cow<'_, str> {
    if !text.contains(steers) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if steers(c) { push_shown(&mut shown, c) } else { shown.push(c) }
    }
    Cow::Owned(shown)
}

/// As [`visible`], but sequences that set colour or weight (`ESC [ … m`) stay.
pub(crate) fn visible_styled(text: &str) -> Cow<'_, str> {
    if !text.contains(steers) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(steers) {
        shown.push_str(&rest[..at]);
        rest = &rest[at..];
        let style = style_length(rest);
        if style > 0 {
            shown.push_str(&rest[..style]);
            rest = &rest[style..];
        } else if let Some(c) = rest.chars().next() {
            push_shown(&mut shown, c);
            rest = &rest[c.len_utf8()..];
        }
    }
    shown.push_str(rest);
    Cow::Owned(shown)
}

/// Bytes of the sequence for colour or weight at the start of `text`; 0 if there is none.
fn style_length(text: &str) -> usize {
    let Some(numbers) = text.strip_prefix("\x1b[") else { return 0 };
    let end = numbers.find(|c: char| !c.is_ascii_digit() && c != ';');
    end.filter(|end| numbers[*end..].starts_with('m')).map_or(0, |end| "\x1b[".len() + end + 1)
}

/// One line of JSON, with the characters that steer a terminal written as JSON's escapes: the value
/// is the same.
pub(crate) fn visible_json(line: &str) -> Cow<'_, str> {
    if !line.contains(steers) {
        return Cow::Borrowed(line);
    }
    let mut shown = String::with_capacity(line.len());
    for c in line.chars() {
        match steers(c) {
            true => shown.push_str(&format!("\\u{:04x}", u32::from(c))),
            false => shown.push(c),
        }
    }
    Cow::Owned(shown)
}

/// As [`visible`], on one line.
pub(crate) fn one_line(text: &str) -> String {
    let (line_feed, tab) = if is_ascii() { ("\\n", "\\t") } else { ("⏎", "⇥") };
    visible(text).replace('\n', line_feed).replace('\t', tab)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_sequences_do_not_reach_the_terminal() {
        let rows = [
            ("plain äöü 🐦\n\ttab", "plain äöü 🐦\n\ttab"),
            ("\u{1b}[2Jgone", "␛[2Jgone"),
            ("a\rb\u{7}\u{7f}\u{9b}c", "a␍b␇␡\\x9bc"),
            ("\u{80}\u{9f}\u{a0}", "\\x80\\x9f\u{a0}"),
            ("file\u{202e}gpj.exe", "file\\u{202e}gpj.exe"),
            ("\u{2066}a\u{2069}", "\\u{2066}a\\u{2069}"),
            ("שלום\u{200f} עולם", "שלום\u{200f} עולם"),
        ];
        for (text, shown) in rows {
            assert_eq!(visible(text), shown);
        }
        assert_eq!(one_line("a\n\tb"), "a⏎⇥b");
    }

    #[test]
    fn only_styles_pass_in_styled_text() {
        let rows = [
            ("\u{1b}[1mbold\u{1b}[0m", "\u{1b}[1mbold\u{1b}[0m"),
            ("\u{1b}[38;5;1mred\u{1b}[m", "\u{1b}[38;5;1mred\u{1b}[m"),
            ("\u{1b}[2Jgone", "␛[2Jgone"),
            ("\u{1b}]0;title\u{7}", "␛]0;title␇"),
            ("\u{1b}", "␛"),
            ("\u{1b}[1", "␛[1"),
            ("\u{9b}1m", "\\x9b1m"),
        ];
        for (text, shown) in rows {
            assert_eq!(visible_styled(text), shown);
        }
    }

    #[test]
    fn escaped_json_has_the_same_value() {
        let text = "a\u{1b}[2J\u{7f}\u{9b}\u{202e}\n\"ü";
        let line = serde_json::to_string(text).expect("JSON");
        let shown = visible_json(&line);
        assert!(!shown.contains(steers), "{shown}");
        assert_eq!(serde_json::from_str::<String>(&shown).expect("JSON"), text);
    }
}
