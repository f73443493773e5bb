//! `strftime_now` of templates: the date and time by a format of C's `strftime`, in the locale C.

use std::time::SystemTime;

use jiff::Zoned;
use jiff::fmt::strtime;
use jiff::tz::TimeZone;
use minijinja::{Error, ErrorKind, Value};

use super::meter::exceeded;
use super::python::format::check_widths;

/// Longest format of a date.
const FORMAT_MAX: usize = 256;

/// `strftime_now(format)` for a given time, in the system's time zone.
pub(super) fn function(now: SystemTime) -> Value {
    Value::from_function(move |form: String| -> Result<String, Error> {
        if form.len() > FORMAT_MAX || check_widths(&form).is_err() {
            return Err(exceeded("it formats a date with a long format"));
        }
        Ok(format(&form, &zoned(now)?))
    })
}

/// The date for templates that read it as a variable: the form of llama.cpp, such as `Nov 29 2026`.
pub(super) fn variable(now: SystemTime) -> Option<String> {
    zoned(now).map(|now| format("%b %d %Y", &now)).ok()
}

fn zoned(now: SystemTime) -> Result<Zoned, Error> {
    let now = jiff::Timestamp::try_from(now).map_err(|error| {
        Error::new(ErrorKind::InvalidOperation, "invalid date").with_source(error)
    })?;
    Ok(now.to_zoned(TimeZone::system()))
}

/// A time by a format of `strftime`. What is no directive stays as it is. The time has no zone, as Python's
/// `datetime.now()` has none: `%Z` and `%z` are empty.
fn format(form: &str, now: &Zoned) -> String {
    let mut text = String::new();
    let mut rest = form;
    while let Some((before, directive)) = rest.split_once('%') {
        text.push_str(before);
        let flags = directive.len() - directive.trim_start_matches(['-', '_', '0', '^', '#']).len();
        let after = &directive[flags..];
        let width =
            after.len() - after.trim_start_matches(|char: char| char.is_ascii_digit()).len();
        let kind = after[width..].trim_start_matches(['E', 'O']);
        let Some(char) = kind.chars().next() else {
            text.push('%');
            text.push_str(directive);
            return text;
        };
        let (modifier, end) =
            (&directive[..flags + width], directive.len() - kind.len() + char.len_utf8());
        match one(modifier, char, now) {
            Some(value) => text.push_str(&value),
            None => {
                text.push('%');
                text.push_str(&directive[..end]);
            }
        }
        rest = &directive[end..];
    }
    text.push_str(rest);
    text
}

/// The text of a directive with flags and width; `None` if there is none.
fn one(modifier: &str, char: char, now: &Zoned) -> Option<String> {
    let form = match char {
        'c' => "%a %b %e %H:%M:%S %Y".to_owned(),
        'x' => "%m/%d/%y".to_owned(),
        'X' => "%H:%M:%S".to_owned(),
        'r' => "%I:%M:%S %p".to_owned(),
        'f' if modifier.is_empty() => {
            return Some(format!("{:06}", now.subsec_nanosecond() / 1000));
        }
        'z' | 'Z' => return Some(String::new()),
        'a' | 'A' | 'b' | 'B' | 'C' | 'd' | 'D' | 'e' | 'F' | 'g' | 'G' | 'h' | 'H' | 'I' | 'j'
        | 'k' | 'l' | 'm' | 'M' | 'n' | 'p' | 'P' | 'R' | 's' | 'S' | 't' | 'T' | 'u' | 'U'
        | 'V' | 'w' | 'W' | 'y' | 'Y' | '%' => {
            format!("%{modifier}{char}")
        }
        _ => return None,
    };
    strtime::format(form, now).ok()
}
