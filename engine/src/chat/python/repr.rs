//! Texts of values as Python's `str` and `repr` make them.

use std::fmt::Write as _;

use minijinja::Value;
use minijinja::value::ValueKind;

/// The text of a value, as `str` makes it.
pub(in crate::chat) fn text(value: &Value) -> String {
    match value.kind() {
        ValueKind::String | ValueKind::Undefined => value.to_string(),
        _ => repr(value),
    }
}

/// The text of a value, as `repr` makes it.
pub(in crate::chat) fn repr(value: &Value) -> String {
    let mut text = String::new();
    write(&mut text, value);
    text
}

fn write(out: &mut String, value: &Value) {
    match value.kind() {
        ValueKind::String => quote(out, value.as_str().unwrap_or_default()),
        ValueKind::Undefined => out.push_str("Undefined"),
        ValueKind::Number if !value.is_integer() => {
            out.push_str(&float(f64::try_from(value.clone()).unwrap_or(f64::NAN)));
        }
        ValueKind::Map => {
            out.push('{');
            for (at, key) in value.try_iter().into_iter().flatten().enumerate() {
                out.push_str(if at > 0 { ", " } else { "" });
                write(out, &key);
                out.push_str(": ");
                write(out, &value.get_item(&key).unwrap_or_default());
            }
            out.push('}');
        }
        ValueKind::Seq => {
            let is_tuple =
                value.is_tuple() || value.get_attr("grouper").is_ok_and(|v| !v.is_undefined());
            out.push(if is_tuple { '(' } else { '[' });
            for (at, item) in value.try_iter().into_iter().flatten().enumerate() {
                out.push_str(if at > 0 { ", " } else { "" });
                write(out, &item);
            }
            out.push_str(if is_tuple && value.len() == Some(1) { "," } else { "" });
            out.push(if is_tuple { ')' } else { ']' });
        }
        _ => _ = write!(out, "{value}"),
    }
}

/// A float: the shortest digits that give it, with an exponent of at least two digits if it is small or large.
pub(in crate::chat) fn float(value: f64) -> String {
    if value.is_nan() {
        return "nan".to_owned();
    }
    let text = format!("{value:?}");
    match text.split_once('e') {
        Some((digits, exponent)) => {
            let (sign, exponent) = match exponent.strip_prefix('-') {
                Some(exponent) => ('-', exponent),
                None => ('+', exponent),
            };
            let digits = digits.strip_suffix(".0").unwrap_or(digits);
            format!("{digits}e{sign}{exponent:0>2}")
        }
        None => text,
    }
}

fn quote(out: &mut String, text: &str) {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    out.push(quote);
    for char in text.chars() {
        match char {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\\' => out.push_str("\\\\"),
            char if char == quote => out.extend(['\\', quote]),
            char if is_printable(char) => out.push(char),
            char if (char as u32) < 0x100 => _ = write!(out, "\\x{:02x}", char as u32),
            char if (char as u32) < 0x10000 => _ = write!(out, "\\u{:04x}", char as u32),
            char => _ = write!(out, "\\U{:08x}", char as u32),
        }
    }
    out.push(quote);
}

/// Whether Python shows a character as it is. Characters of plane 16 count as such: some stand for others while a
/// prompt is rendered.
pub(super) fn is_printable(char: char) -> bool {
    let is_invisible = matches!(
        char,
        '\u{ad}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}' | '\u{180e}' | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
            | '\u{e000}'..='\u{f8ff}' | '\u{e0001}'..='\u{e007f}' | '\u{f0000}'..='\u{ffffd}'
    );
    char == ' ' || !(char.is_control() || char.is_whitespace() || is_invisible)
}
