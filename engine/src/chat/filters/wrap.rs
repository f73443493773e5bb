//! Filters that break texts into lines.

use minijinja::value::ValueKind;
use minijinja::{Error, Value};

use super::texts::text_of;
use crate::chat::arguments::Arguments;
use crate::chat::meter::{Meter, exceeded};
use crate::chat::python::{repr, text};

/// Widest indent.
pub(in crate::chat) const INDENT_MAX: usize = 64;
/// Widths of `indent` and `wordwrap`, and of lines of `pprint`.
const INDENT: usize = 4;
const WRAP: i64 = 79;
const PRINT: usize = 80;

/// What a line is indented by: a text, or so many spaces.
pub(in crate::chat) fn indentation(value: Option<&Value>) -> Result<String, Error> {
    let text = match (value, value.and_then(Value::as_str)) {
        (_, Some(text)) => text.to_owned(),
        (None, None) => " ".repeat(INDENT),
        (Some(value), None) => {
            let width = value.as_i64().map_or(0, |width| usize::try_from(width).unwrap_or(0));
            " ".repeat(width.min(INDENT_MAX + 1))
        }
    };
    match text.len() > INDENT_MAX {
        true => Err(exceeded(&format!("it indents by more than {INDENT_MAX}"))),
        false => Ok(text),
    }
}

/// Indents all lines but the first, and but empty ones unless they count, too.
pub(super) fn indent(meter: &Meter, value: &Value, args: &Arguments) -> Result<Value, Error> {
    let indentation = indentation(args.get(0))?;
    // With a line feed more, a line feed at the end stays.
    let given = format!("{}\n", text_of(value));
    let lines = text::lines(&given, false);
    meter.check_size((given.len() + lines.len() * indentation.len()) as u64)?;
    let mut text = String::new();
    for (at, line) in lines.iter().enumerate() {
        text.push_str(if at > 0 { "\n" } else { "" });
        let is_indented = if at == 0 { args.flag(1) } else { args.flag(2) || !line.is_empty() };
        text.push_str(if is_indented { &indentation } else { "" });
        text.push_str(line);
    }
    Ok(text.into())
}

/// Breaks lines that are longer than the width between words.
pub(super) fn wordwrap(meter: &Meter, value: &Value, args: &Arguments) -> Result<Value, Error> {
    let width = usize::try_from(args.integer(0)?.unwrap_or(WRAP)).unwrap_or(0).max(1);
    let between = args.text(2)?.unwrap_or("\n");
    let is_on = |at: usize| args.get(at).is_none_or(Value::is_true);
    let given = text_of(value);
    meter.check_size((given.len() as u64).saturating_mul(1 + between.len() as u64))?;
    let mut wrapped = Vec::new();
    for line in text::lines(&given, false) {
        wrapped.push(lines_of(chunks(line, is_on(3)), width, is_on(1)).join(between));
    }
    Ok(wrapped.join(between).into())
}

/// Words and the spaces between them; words are cut after hyphens between letters if asked.
fn chunks(line: &str, at_hyphens: bool) -> Vec<String> {
    let mut chunks: Vec<String> = Vec::new();
    let chars: Vec<char> = line.chars().collect();
    let is_letter = |at: Option<usize>| {
        at.and_then(|at| chars.get(at)).is_some_and(|char| char.is_alphabetic())
    };
    let mut starts = true;
    for (at, &char) in chars.iter().enumerate() {
        let is_border = at > 0 && char.is_whitespace() != chars[at - 1].is_whitespace();
        match chunks.last_mut() {
            Some(last) if !is_border && !starts => last.push(char),
            _ => chunks.push(char.into()),
        }
        let letters = is_letter(at.checked_sub(2)) && is_letter(at.checked_sub(1));
        starts = at_hyphens
            && char == '-'
            && letters
            && is_letter(Some(at + 1))
            && is_letter(Some(at + 2));
    }
    chunks
}

/// Puts chunks into lines, without spaces at the start and the end of each but the first one's start.
fn lines_of(chunks: Vec<String>, width: usize, break_long: bool) -> Vec<String> {
    let mut lines = Vec::new();
    let mut rest: std::collections::VecDeque<String> = chunks.into();
    let is_space = |chunk: &String| chunk.trim().is_empty();
    while !rest.is_empty() {
        if !lines.is_empty() && rest.front().is_some_and(is_space) {
            rest.pop_front();
        }
        let (mut line, mut length): (Vec<String>, usize) = (Vec::new(), 0);
        while let Some(chunk) = rest.pop_front() {
            let chars = chunk.chars().count();
            if length + chars <= width {
                length += chars;
                line.push(chunk);
                continue;
            }
            match chars > width {
                true if break_long => {
                    let at =
                        chunk.char_indices().nth(width - length).map_or(chunk.len(), |(at, _)| at);
                    let (now, later) = chunk.split_at(at);
                    line.push(now.to_owned());
                    rest.push_front(later.to_owned());
                }
                true if line.is_empty() => line.push(chunk),
                _ => rest.push_front(chunk),
            }
            break;
        }
        if line.last().is_some_and(is_space) {
            line.pop();
        }
        if !line.is_empty() {
            lines.push(line.concat());
        }
    }
    lines
}

/// A value as Python's `pprint` shows it: one line if it fits, else an element on each line.
pub(super) fn pprint(meter: &Meter, value: &Value, _: &Arguments) -> Result<Value, Error> {
    let mut text = String::new();
    pretty(meter, value, &mut text, 0, 0)?;
    Ok(text.into())
}

fn pretty(
    meter: &Meter,
    value: &Value,
    text: &mut String,
    indent: usize,
    after: usize,
) -> Result<(), Error> {
    let is_map = value.kind() == ValueKind::Map;
    let line = if is_map { one_line(value)? } else { repr::repr(value) };
    let fits = line.chars().count() <= PRINT.saturating_sub(indent + after);
    if fits || !matches!(value.kind(), ValueKind::Seq | ValueKind::Map) || value.len() == Some(0) {
        text.push_str(&line);
        return Ok(());
    }
    let ends = if is_map {
        ('{', '}')
    } else if value.is_tuple() {
        ('(', ')')
    } else {
        ('[', ']')
    };
    text.push(ends.0);
    let items = if is_map { sorted_keys(value)? } else { value.try_iter()?.collect() };
    let count = items.len();
    for (at, item) in items.into_iter().enumerate() {
        if at > 0 {
            text.push_str(",\n");
            text.push_str(&" ".repeat(indent + 1));
        }
        let after = if at + 1 == count { after + 1 } else { 1 };
        let mut inner = indent + 1;
        let shown = match is_map {
            true => {
                let key = repr::repr(&item);
                inner += key.chars().count() + 2;
                text.push_str(&format!("{key}: "));
                value.get_item(&item)?
            }
            false => item,
        };
        pretty(meter, &shown, &mut *text, inner, after)?;
        meter.check_size(text.len() as u64)?;
    }
    text.push(ends.1);
    Ok(())
}

fn sorted_keys(map: &Value) -> Result<Vec<Value>, Error> {
    let mut keys: Vec<Value> = map.try_iter()?.collect();
    keys.sort();
    Ok(keys)
}

fn one_line(map: &Value) -> Result<String, Error> {
    let pairs = sorted_keys(map)?.into_iter().map(|key| {
        let value = map.get_item(&key)?;
        Ok(format!("{}: {}", repr::repr(&key), repr::repr(&value)))
    });
    Ok(format!("{{{}}}", pairs.collect::<Result<Vec<_>, Error>>()?.join(", ")))
}
