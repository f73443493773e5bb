//! Filters for HTML and addresses.

use std::fmt::Write as _;

use minijinja::value::ValueKind;
use minijinja::{Error, ErrorKind, Value};

use super::texts::text_of;
use crate::chat::arguments::Arguments;
use crate::chat::meter::Meter;

/// Characters with a meaning in HTML, and what stands for them.
const ESCAPES: [(&str, &str); 5] =
    [("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("\"", "&#34;"), ("'", "&#39;")];

pub(super) fn escaped(text: &str) -> String {
    ESCAPES.iter().fold(text.to_owned(), |text, (char, escape)| text.replace(char, escape))
}

fn checked(meter: &Meter, text: String) -> Result<Value, Error> {
    meter.check_size(text.len() as u64)?;
    Ok(Value::from_safe_string(text))
}

/// Escapes what is not marked as safe.
pub(super) fn escape(meter: &Meter, value: &Value, args: &Arguments) -> Result<Value, Error> {
    if value.is_safe() { Ok(value.clone()) } else { force_escape(meter, value, args) }
}

pub(super) fn force_escape(meter: &Meter, value: &Value, _: &Arguments) -> Result<Value, Error> {
    checked(meter, escaped(&text_of(value)))
}

/// The text without tags and comments, with one space for each run of white space.
pub(super) fn strip_tags(_: &Meter, value: &Value, _: &Arguments) -> Result<Value, Error> {
    let given = text_of(value);
    let mut text = String::new();
    let mut rest = &*given;
    while let Some(at) = rest.find('<') {
        let end = match rest[at..].starts_with("<!--") {
            true => rest[at..].find("-->").map(|end| end + 3),
            false => rest[at..].find('>').map(|end| end + 1),
        };
        let Some(end) = end else { break };
        text.push_str(&rest[..at]);
        rest = &rest[at + end..];
    }
    text.push_str(rest);
    let words: Vec<&str> = text.split_whitespace().collect();
    let text = words.join(" ").replace("&quot;", "\"").replace("&nbsp;", "\u{a0}");
    // What stands for `&` comes last, so that nothing is read twice.
    let text = ESCAPES.iter().rev().fold(text, |text, (char, escape)| text.replace(escape, char));
    Ok(text.into())
}

fn quoted(text: &str, in_query: bool) -> String {
    let mut quoted = String::new();
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'_' | b'.' | b'-' | b'~' => {
                quoted.push(byte.into())
            }
            b'/' if !in_query => quoted.push('/'),
            b' ' if in_query => quoted.push('+'),
            byte => _ = write!(quoted, "%{byte:02X}"),
        }
    }
    quoted
}

/// A part of an address, or a query of the pairs of a dictionary or list.
pub(super) fn url_encode(meter: &Meter, value: &Value, _: &Arguments) -> Result<Value, Error> {
    let text = match value.kind() {
        ValueKind::Map | ValueKind::Seq | ValueKind::Iterable => {
            let mut parts = Vec::new();
            for item in value.try_iter()? {
                let (name, value) = match value.kind() {
                    ValueKind::Map => (item.clone(), value.get_item(&item)?),
                    _ => (item.get_item_by_index(0)?, item.get_item_by_index(1)?),
                };
                let quoted = |value: &Value| quoted(&text_of(value), true);
                parts.push(format!("{}={}", quoted(&name), quoted(&value)));
            }
            parts.join("&")
        }
        _ => quoted(&text_of(value), false),
    };
    meter.check_size(text.len() as u64)?;
    Ok(text.into())
}

/// The attributes of an element, without those that are none or undefined.
pub(super) fn attributes(meter: &Meter, value: &Value, args: &Arguments) -> Result<Value, Error> {
    let mut parts = Vec::new();
    for key in value.try_iter()? {
        let of_key = value.get_item(&key)?;
        let name = text_of(&key);
        if name.contains(|char: char| char.is_whitespace() || matches!(char, '/' | '>' | '=')) {
            return Err(Error::new(
                ErrorKind::InvalidOperation,
                "a name of an attribute has a sign that it cannot have",
            ));
        }
        if !of_key.is_none() && !of_key.is_undefined() {
            parts.push(format!("{}=\"{}\"", escaped(&name), escaped(&text_of(&of_key))));
        }
    }
    let has_space = args.get(0).is_none_or(Value::is_true) && !parts.is_empty();
    checked(meter, format!("{}{}", if has_space { " " } else { "" }, parts.join(" ")))
}
