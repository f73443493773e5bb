//! Texts with fields: `str.format`, the operator `%` and the filter `format`.

use minijinja::formatting::{FormatStyle, format};
use minijinja::value::{Kwargs, Rest, ValueKind, from_args};
use minijinja::{Error, ErrorKind, State, Value};

use super::numbers::Number;
use super::repr;
use crate::chat::meter::{Meter, exceeded, metered};

/// Longest number in a format.
const WIDTH_DIGITS_MAX: usize = 3;

/// `text.format(…)`: fields in braces, with `!r` and `!s`.
pub(super) fn braces(state: &State<'_, '_>, text: &str, args: &[Value]) -> Result<Value, Error> {
    check_widths(text)?;
    let mut made = String::with_capacity(text.len());
    let (mut rest, mut next) = (text, 0);
    while let Some(at) = rest.find(['{', '}']) {
        let (before, field) = rest.split_at(at);
        made.push_str(before);
        if field.starts_with("{{") || field.starts_with("}}") {
            made.push_str(&field[..1]);
            rest = &field[2..];
            continue;
        }
        let end = field.find('}').filter(|_| field.starts_with('{'));
        let end = end.ok_or_else(|| failed("a field of a format does not end"))?;
        made.push_str(&one_field(&field[1..end], &mut next, args)?);
        metered(state, |meter| meter.check_size(made.len() as u64))?;
        rest = &field[end + 1..];
    }
    made.push_str(rest);
    Ok(made.into())
}

/// The text of a field: `name`, `name!conversion`, `name:form` or all of these. Fields without a name are numbered.
fn one_field(field: &str, next: &mut usize, args: &[Value]) -> Result<String, Error> {
    let (head, form) = match field.split_once(':') {
        Some((head, form)) => (head, format!(":{form}")),
        None => (field, String::new()),
    };
    let (name, conversion) = match head.split_once('!') {
        Some((name, conversion)) => (name, Some(conversion)),
        None => (head, None),
    };
    let end = name.find(['.', '[']).unwrap_or(name.len());
    let (first, path) = name.split_at(end);
    let first = match first {
        "" => {
            *next += 1;
            (*next - 1).to_string()
        }
        first => first.to_owned(),
    };
    let Some(conversion) = conversion else {
        return format(FormatStyle::StrFormat, &format!("{{{first}{path}{form}}}"), args);
    };
    let (positional, named): (Rest<Value>, Kwargs) = from_args(args)?;
    let found = match first.parse::<usize>() {
        Ok(at) => positional.get(at).cloned(),
        Err(_) => named.get::<Option<Value>>(&first)?,
    };
    let found = found.filter(|_| path.is_empty());
    let found = found.ok_or_else(|| failed("a field of a format has no argument"))?;
    let text = match conversion {
        "s" => repr::text(&found),
        "r" | "a" => repr::repr(&found),
        _ => return Err(failed("a conversion of a format is not r, s or a")),
    };
    format(FormatStyle::StrFormat, &format!("{{{form}}}"), &[text.into()])
}

/// The entries of a dictionary as named arguments.
pub(super) fn named(args: &[Value]) -> Result<Value, Error> {
    let [map] = args else { return Err(failed("'format_map' takes one dictionary")) };
    let names = map.try_iter()?.filter_map(|key| {
        let name = key.as_str()?.to_owned();
        Some(map.get_item(&key).map(|value| (name, value)))
    });
    Ok(names.collect::<Result<Kwargs, Error>>()?.into())
}

/// `text % value`: the value is a tuple of values, or a dictionary for names in parentheses, or one value.
pub(in crate::chat) fn percent(meter: &Meter, text: &str, value: &Value) -> Result<Value, Error> {
    check_widths(text)?;
    let mut values = match value.is_tuple() {
        true => value.try_iter()?.collect(),
        false => vec![value.clone()],
    }
    .into_iter();
    // Python takes a list as a dictionary here.
    let is_container = matches!(value.kind(), ValueKind::Map | ValueKind::Seq) && !value.is_tuple();
    let mut next = || values.next().ok_or_else(|| failed("a format has more fields than values"));
    let (mut form, mut args) = (String::new(), Vec::new());
    let (mut rest, mut size) = (text, text.len() as u64);
    let mut is_named = false;
    while let Some((before, field)) = rest.split_once('%') {
        form.push_str(before);
        form.push('%');
        let (name, field) = match field.strip_prefix('(').and_then(|field| field.split_once(')')) {
            Some((name, field)) => (Some(name), field),
            None => (None, field),
        };
        is_named |= name.is_some();
        let is_form = |char: char| {
            matches!(char, '-' | '+' | ' ' | '#' | '.' | '*' | 'h' | 'l' | 'L')
                || char.is_ascii_digit()
        };
        let end = field
            .find(|char| !is_form(char))
            .ok_or_else(|| failed("a field of a format has no type"))?;
        for char in field[..end].chars() {
            match char {
                '*' => form.push_str(&width(&next()?)?),
                char => form.push(char),
            }
        }
        let length = field[end..].chars().next().map_or(0, char::len_utf8);
        let kind = &field[end..end + length];
        rest = &field[end + kind.len()..];
        if kind == "%" {
            form.push('%');
            continue;
        }
        let of_field = match name {
            Some(name) => value.get_item(&name.into())?,
            None => next()?,
        };
        size += meter.measure_read(&of_field)?.bytes;
        meter.check_size(size)?;
        let (kind, arg) = shown(kind, of_field);
        form.push_str(kind);
        args.push(arg);
    }
    form.push_str(rest);
    if !is_named && !is_container && next().is_ok() {
        return Err(failed("a format has fewer fields than values"));
    }
    format(FormatStyle::Printf, &form, &args).map(Value::from)
}

fn width(value: &Value) -> Result<String, Error> {
    let width = value
        .as_usize()
        .ok_or_else(|| failed("a width of a format is not an integer"))?
        .to_string();
    check_widths(&width).map(|()| width)
}

/// The type of a field and its value as the engine formats them.
fn shown(kind: &str, value: Value) -> (&str, Value) {
    match kind {
        "s" => ("s", repr::text(&value).into()),
        "r" | "a" => ("s", repr::repr(&value).into()),
        "d" | "i" | "u" => (
            "d",
            match Number::of(&value) {
                Some(Number::Float(number)) if number.abs() < 1e38 => {
                    Value::from(number.trunc() as i128)
                }
                _ => value,
            },
        ),
        kind => (kind, value),
    }
}

/// Refuses large widths, and widths that are arguments.
pub(in crate::chat) fn check_widths(format: &str) -> Result<(), Error> {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let is_wide = format.char_indices().any(|(at, _)| digits(&format[at..]) > WIDTH_DIGITS_MAX);
    let is_nested = format.split('{').skip(1).any(|field| {
        // Between `{` and the next `{` a field that is still open has a colon and no end.
        !field.is_empty() && !field.contains('}') && field.contains(':')
    });
    if is_wide || is_nested {
        return Err(exceeded("it formats a text with a width of more than 999"));
    }
    Ok(())
}

fn failed(what: &'static str) -> Error {
    Error::new(ErrorKind::InvalidOperation, what)
}
