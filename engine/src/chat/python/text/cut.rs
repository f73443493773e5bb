//! Cuts texts into parts.

use minijinja::{Error, ErrorKind};

use super::is_space;

/// The parts between separators, or between runs of white space; at most `most` cuts, from the end if asked.
pub(super) fn split<'a>(
    text: &'a str,
    separator: Option<&str>,
    most: usize,
    from_end: bool,
) -> Result<Vec<&'a str>, Error> {
    let limit = most.saturating_add(1);
    Ok(match (separator, from_end) {
        (Some(""), _) => {
            return Err(Error::new(ErrorKind::InvalidOperation, "the separator is empty"));
        }
        (Some(separator), false) => text.splitn(limit, separator).collect(),
        (Some(separator), true) => {
            let mut parts: Vec<&str> = text.rsplitn(limit, separator).collect();
            parts.reverse();
            parts
        }
        (None, false) => {
            let mut parts = Vec::new();
            let mut rest = text.trim_start_matches(is_space);
            while !rest.is_empty() && parts.len() < most {
                let end = rest.find(is_space).unwrap_or(rest.len());
                parts.push(&rest[..end]);
                rest = rest[end..].trim_start_matches(is_space);
            }
            parts.extend((!rest.is_empty()).then_some(rest));
            parts
        }
        (None, true) => {
            let mut parts = Vec::new();
            let mut rest = text.trim_end_matches(is_space);
            while !rest.is_empty() && parts.len() < most {
                let last = rest.char_indices().rev().find(|(_, char)| is_space(*char));
                let start = last.map_or(0, |(at, char)| at + char.len_utf8());
                parts.push(&rest[start..]);
                rest = rest[..start].trim_end_matches(is_space);
            }
            parts.extend((!rest.is_empty()).then_some(rest));
            parts.reverse();
            parts
        }
    })
}

/// The text before a separator, the separator, and the text after it.
pub(super) fn partition<'a>(
    text: &'a str,
    separator: &str,
    from_end: bool,
) -> Result<[&'a str; 3], Error> {
    if separator.is_empty() {
        return Err(Error::new(ErrorKind::InvalidOperation, "the separator is empty"));
    }
    let found = if from_end { text.rfind(separator) } else { text.find(separator) };
    Ok(match (found, from_end) {
        (Some(at), _) => {
            let (before, rest) = text.split_at(at);
            let (separator, after) = rest.split_at(separator.len());
            [before, separator, after]
        }
        (None, false) => [text, "", ""],
        (None, true) => ["", "", text],
    })
}

/// The lines of a text, with their ends if asked.
pub(in crate::chat) fn lines(text: &str, keep_ends: bool) -> Vec<&str> {
    let mut lines = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let is_end = |char: char| {
            matches!(
                char,
                '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{1c}'
                    ..='\u{1e}' | '\u{85}' | '\u{2028}' | '\u{2029}'
            )
        };
        let at = rest.find(is_end).unwrap_or(rest.len());
        let end = match &rest[at..] {
            after if after.starts_with("\r\n") => at + 2,
            after => at + after.chars().next().map_or(0, char::len_utf8),
        };
        lines.push(&rest[..if keep_ends { end } else { at }]);
        rest = &rest[end..];
    }
    lines
}

/// The words of a text: runs of letters, digits and underscores.
pub(in crate::chat) fn words(text: &str) -> usize {
    let parts = text.split(|char: char| !(char.is_alphanumeric() || char == '_'));
    parts.filter(|part| !part.is_empty()).count()
}
