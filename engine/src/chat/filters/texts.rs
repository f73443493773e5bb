//! Filters of texts.

use minijinja::value::{Kwargs, Rest, Tuple, from_args};
use minijinja::{Error, ErrorKind, State, Value};

use crate::chat::arguments::Arguments;
use crate::chat::meter::{Meter, metered};
use crate::chat::python::format::percent;
use crate::chat::python::{repr, text};

/// The text of any value.
pub(super) fn text_of(value: &Value) -> String {
    repr::text(value)
}

/// Width of `center`, of which Jinja2 has no other limit.
const CENTER_WIDTH: i64 = 80;
/// Length and leeway of `truncate`.
const LENGTH: i64 = 255;
const LEEWAY: i64 = 5;

pub(super) fn string(_: &Meter, value: &Value, _: &Arguments) -> Result<Value, Error> {
    Ok(if value.as_str().is_some() { value.clone() } else { text_of(value).into() })
}

pub(super) fn capitalize(_: &Meter, value: &Value, _: &Arguments) -> Result<Value, Error> {
    Ok(text::capitalize(&text_of(value)).into())
}

/// The first character of each word in upper case, the others in lower case.
pub(super) fn title(_: &Meter, value: &Value, _: &Arguments) -> Result<Value, Error> {
    let is_border =
        |char: char| char.is_whitespace() || matches!(char, '-' | '(' | '{' | '[' | '<');
    let mut titled = String::new();
    let mut starts = true;
    for char in text_of(value).chars() {
        match starts && !is_border(char) {
            true => titled.extend(char.to_uppercase()),
            false => titled.extend(char.to_lowercase()),
        }
        starts = is_border(char);
    }
    Ok(titled.into())
}

pub(super) fn trim(_: &Meter, value: &Value, args: &Arguments) -> Result<Value, Error> {
    Ok(text::strip(&text_of(value), args.text(0)?, true, true).into())
}

pub(super) fn replace(meter: &Meter, value: &Value, args: &Arguments) -> Result<Value, Error> {
    let (old, new) = (text_of(args.need(0)?), text_of(args.need(1)?));
    text::replace(meter, &text_of(value), &old, &new, args.integer(2)?).map(Value::from)
}

pub(super) fn center(meter: &Meter, value: &Value, args: &Arguments) -> Result<Value, Error> {
    let width = args.integer(0)?.unwrap_or(CENTER_WIDTH);
    text::pad(meter, &text_of(value), "center", width, " ").map(Value::from)
}

/// At most `length` characters with the end, unless the text is longer by no more than the leeway.
pub(super) fn truncate(_: &Meter, value: &Value, args: &Arguments) -> Result<Value, Error> {
    let given = text_of(value);
    let end = args.text(2)?.unwrap_or("...");
    let length = args.integer(0)?.unwrap_or(LENGTH);
    let leeway = args.integer(3)?.unwrap_or(LEEWAY);
    let kept = length.saturating_sub(end.chars().count() as i64);
    let (Ok(kept), 0..) = (usize::try_from(kept), leeway) else {
        return Err(Error::new(
            ErrorKind::InvalidOperation,
            "'truncate' needs a length of at least that of the end, and a leeway of at least 0",
        ));
    };
    if given.chars().count() as i64 <= length.saturating_add(leeway) {
        return Ok(given.into());
    }
    let cut: String = given.chars().take(kept).collect();
    let kept =
        if args.flag(1) { &*cut } else { cut.rsplit_once(' ').map_or(&*cut, |(kept, _)| kept) };
    Ok(format!("{kept}{end}").into())
}

pub(super) fn wordcount(_: &Meter, value: &Value, _: &Arguments) -> Result<Value, Error> {
    Ok(text::words(&text_of(value)).into())
}

/// `text|format(value, …)` or `text|format(name=value, …)`: as the operator `%`.
pub(super) fn format(state: &State<'_, '_>, args: &[Value]) -> Result<Value, Error> {
    let (positional, named): (Rest<Value>, Kwargs) = from_args(args)?;
    let mut positional = positional.0.into_iter();
    let form = positional.next().ok_or_else(super::missing_value)?;
    let names: Vec<&str> = named.args().collect();
    let values: Vec<Value> = positional.collect();
    let value = match (names.is_empty(), values.is_empty()) {
        (true, _) => Value::from(Tuple::from(values)),
        (false, true) => {
            let pairs = names.iter().map(|name| Ok(((*name).to_owned(), named.get(name)?)));
            super::lists::named_values(pairs.collect::<Result<Kwargs, Error>>()?)?
        }
        (false, false) => {
            let what = "'format' takes values by position or by name, not both";
            return Err(Error::new(ErrorKind::InvalidOperation, what));
        }
    };
    metered(state, |meter| {
        meter.read(&form)?;
        percent(meter, &text_of(&form), &value)
    })
}
