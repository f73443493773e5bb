//! Methods of Python's texts. Positions and widths count characters.

use minijinja::value::{Tuple, ValueKind};
use minijinja::{Error, ErrorKind, Value};

use super::repr::is_printable;
use crate::chat::arguments::Arguments;
use crate::chat::meter::Meter;

mod cases;
mod cut;
mod kinds;

pub(in crate::chat) use cases::capitalize;
pub(in crate::chat) use cut::{lines, words};

/// Calls a method of a text. Its arguments have been read.
pub(super) fn call(
    meter: &Meter,
    text: &str,
    method: &str,
    args: &[Value],
) -> Result<Value, Error> {
    let bound = |parameters| Arguments::bind(method, parameters, args);
    if let Some(answer) = kinds::answer(text, method) {
        bound(&[])?;
        return Ok(answer.into());
    }
    if let Some(changed) = cases::changed(text, method) {
        bound(&[])?;
        return Ok(changed.into());
    }
    match method {
        "strip" | "lstrip" | "rstrip" => {
            let args = bound(&["chars"])?;
            Ok(strip(text, args.text(0)?, method != "rstrip", method != "lstrip").into())
        }
        "removeprefix" => {
            let args = bound(&["prefix"])?;
            Ok(text.strip_prefix(args.need_text(0)?).unwrap_or(text).into())
        }
        "removesuffix" => {
            let args = bound(&["suffix"])?;
            Ok(text.strip_suffix(args.need_text(0)?).unwrap_or(text).into())
        }
        "replace" => {
            let args = bound(&["old", "new", "count"])?;
            let (old, new) = (args.need_text(0)?, args.need_text(1)?);
            Ok(replace(meter, text, old, new, args.integer(2)?)?.into())
        }
        "center" | "ljust" | "rjust" => {
            let args = bound(&["width", "fillchar"])?;
            let fill = args.text(1)?.unwrap_or(" ");
            pad(meter, text, method, args.integer(0)?.unwrap_or(0), fill).map(Value::from)
        }
        "zfill" => {
            let width = bound(&["width"])?.integer(0)?.unwrap_or(0);
            let sign = text.get(..1).filter(|sign| matches!(*sign, "+" | "-")).unwrap_or_default();
            let padded = pad(
                meter,
                &text[sign.len()..],
                "rjust",
                width.saturating_sub(sign.len() as i64),
                "0",
            )?;
            Ok(format!("{sign}{padded}").into())
        }
        "expandtabs" => {
            let width = bound(&["tabsize"])?.integer(0)?.unwrap_or(8);
            expand_tabs(meter, text, width).map(Value::from)
        }
        "count" | "find" | "rfind" | "index" | "rindex" | "startswith" | "endswith" => {
            search(text, method, &bound(&["sub", "start", "end"])?)
        }
        "join" => join(meter, text, bound(&["iterable"])?.need(0)?),
        "split" | "rsplit" => {
            let args = bound(&["sep", "maxsplit"])?;
            let most = usize::try_from(args.integer(1)?.unwrap_or(-1)).unwrap_or(usize::MAX);
            let parts = cut::split(text, args.text(0)?, most, method == "rsplit");
            parts.map(|parts| parts.into_iter().map(Value::from).collect())
        }
        "splitlines" => {
            let keep = bound(&["keepends"])?.flag(0);
            Ok(cut::lines(text, keep).into_iter().map(Value::from).collect())
        }
        "partition" | "rpartition" => {
            let args = bound(&["sep"])?;
            let parts = cut::partition(text, args.need_text(0)?, method == "rpartition")?;
            Ok(Value::from(Tuple::from(parts.map(Value::from))))
        }
        _ => Err(Error::from(ErrorKind::UnknownMethod)),
    }
}

/// Whether Python counts a character as white space.
pub(super) fn is_space(char: char) -> bool {
    char.is_whitespace() || matches!(char, '\u{1c}'..='\u{1f}')
}

/// The text without characters at its start, its end, or both: white space unless `chars` are given.
pub(in crate::chat) fn strip<'a>(
    text: &'a str,
    chars: Option<&str>,
    start: bool,
    end: bool,
) -> &'a str {
    let gone = |char: char| match chars {
        Some(chars) => chars.contains(char),
        None => is_space(char),
    };
    let text = if start { text.trim_start_matches(gone) } else { text };
    if end { text.trim_end_matches(gone) } else { text }
}

/// Replaces `old` by `new`, the first `count` times unless that is negative.
pub(in crate::chat) fn replace(
    meter: &Meter,
    text: &str,
    old: &str,
    new: &str,
    count: Option<i64>,
) -> Result<String, Error> {
    let times = if old.is_empty() { text.chars().count() + 1 } else { text.matches(old).count() };
    let most = count.and_then(|count| usize::try_from(count).ok()).unwrap_or(times);
    meter.check_size(text.len() as u64 + times.min(most) as u64 * new.len() as u64)?;
    Ok(text.replacen(old, new, most))
}

/// A text of at least `width` characters, filled on the side or sides that the method names.
pub(in crate::chat) fn pad(
    meter: &Meter,
    text: &str,
    method: &str,
    width: i64,
    fill: &str,
) -> Result<String, Error> {
    let mut chars = fill.chars();
    let (Some(fill), None) = (chars.next(), chars.next()) else {
        let what = format!("'{method}' fills with one character");
        return Err(Error::new(ErrorKind::InvalidOperation, what));
    };
    let width = usize::try_from(width).unwrap_or(0);
    let missing = width.saturating_sub(text.chars().count());
    meter
        .check_size(text.len() as u64 + (missing as u64).saturating_mul(fill.len_utf8() as u64))?;
    let left = match method {
        "ljust" => 0,
        "rjust" => missing,
        _ => missing / 2 + (missing & width & 1),
    };
    let filled = |count: usize| std::iter::repeat_n(fill, count);
    Ok(filled(left).chain(text.chars()).chain(filled(missing - left)).collect())
}

fn expand_tabs(meter: &Meter, text: &str, width: i64) -> Result<String, Error> {
    let width = usize::try_from(width).unwrap_or(0);
    let tabs = text.matches('\t').count() as u64;
    meter.check_size(text.len() as u64 + tabs.saturating_mul(width as u64))?;
    let mut expanded = String::new();
    let mut column = 0;
    for char in text.chars() {
        match char {
            '\t' => {
                let spaces = if width == 0 { 0 } else { width - column % width };
                expanded.extend(std::iter::repeat_n(' ', spaces));
                column += spaces;
            }
            '\n' | '\r' => {
                expanded.push(char);
                column = 0;
            }
            char => {
                expanded.push(char);
                column += 1;
            }
        }
    }
    Ok(expanded)
}

/// A position of a slice among `length` items; negative ones count from the end.
pub(super) fn bound(given: Option<i64>, default: usize, length: usize) -> usize {
    match given {
        None => default,
        Some(at) if at < 0 => {
            length.saturating_sub(usize::try_from(at.unsigned_abs()).unwrap_or(usize::MAX))
        }
        Some(at) => usize::try_from(at).unwrap_or(usize::MAX),
    }
}

/// Methods that look for a text in a slice of another.
fn search(text: &str, method: &str, args: &Arguments) -> Result<Value, Error> {
    let length = text.chars().count();
    let (start, end) =
        (bound(args.integer(1)?, 0, length), bound(args.integer(2)?, length, length));
    let end = end.min(length);
    let byte = |at: usize| text.char_indices().nth(at).map_or(text.len(), |(byte, _)| byte);
    let part = (start <= end).then(|| &text[byte(start)..byte(end)]);
    if matches!(method, "startswith" | "endswith") {
        let wanted = args.need(0)?;
        let holds = |wanted: &Value| match (wanted.as_str(), part) {
            (Some(wanted), Some(part)) if method == "startswith" => Ok(part.starts_with(wanted)),
            (Some(wanted), Some(part)) => Ok(part.ends_with(wanted)),
            (Some(_), None) => Ok(false),
            (None, _) => {
                let what = format!("'{method}' needs a text or a tuple of texts");
                Err(Error::new(ErrorKind::InvalidOperation, what))
            }
        };
        if wanted.kind() != ValueKind::Seq {
            return holds(wanted).map(Value::from);
        }
        for wanted in wanted.try_iter()? {
            if holds(&wanted)? {
                return Ok(true.into());
            }
        }
        return Ok(false.into());
    }
    let wanted = args.need_text(0)?;
    if method == "count" {
        let count = part.map_or(0, |part| match wanted {
            "" => part.chars().count() + 1,
            wanted => part.matches(wanted).count(),
        });
        return Ok(count.into());
    }
    let found = part.and_then(|part| {
        let byte = if method.starts_with('r') { part.rfind(wanted) } else { part.find(wanted) };
        byte.map(|byte| start + part[..byte].chars().count())
    });
    match found {
        Some(at) => Ok(at.into()),
        None if method.ends_with("find") => Ok((-1).into()),
        None => Err(Error::new(ErrorKind::InvalidOperation, "the text was not found")),
    }
}

fn join(meter: &Meter, between: &str, items: &Value) -> Result<Value, Error> {
    let mut joined = String::new();
    for (at, item) in items.try_iter()?.enumerate() {
        let Some(item) = item.as_str() else {
            let what = format!("'join' joins texts, and an element is {}", item.kind());
            return Err(Error::new(ErrorKind::InvalidOperation, what));
        };
        joined.push_str(if at > 0 { between } else { "" });
        joined.push_str(item);
        meter.check_size(joined.len() as u64)?;
    }
    Ok(joined.into())
}
