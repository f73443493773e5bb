//! Writes regular expressions from plain text.

/// Appends a character so that it stands for itself, inside or outside of a class, also between slashes.
pub(super) fn push_char(regex: &mut String, char: char) {
    match char.is_ascii_alphanumeric() {
        true => regex.push(char),
        false => regex.push_str(&format!("\\x{{{:X}}}", u32::from(char))),
    }
}

/// An expression that matches one of these texts.
pub(super) fn one_of(texts: &[String]) -> String {
    let mut regex = String::from("(?:");
    for (number, text) in texts.iter().enumerate() {
        if number > 0 {
            regex.push('|');
        }
        text.chars().for_each(|char| push_char(&mut regex, char));
    }
    regex.push(')');
    regex
}

/// An expression without the anchors of a whole text.
pub(super) fn without_anchors(pattern: &str) -> &str {
    let pattern = pattern.strip_prefix('^').unwrap_or(pattern);
    match pattern.strip_suffix('$') {
        Some(rest) if !is_escaped(rest) => rest,
        _ => pattern,
    }
}

/// Whether a character after `text` is escaped by a backslash.
fn is_escaped(text: &str) -> bool {
    text.bytes().rev().take_while(|byte| *byte == b'\\').count() % 2 == 1
}
