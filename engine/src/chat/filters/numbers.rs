//! Filters that make numbers, and texts of them.

use minijinja::{Error, ErrorKind, Value};

use crate::chat::arguments::Arguments;
use crate::chat::meter::Meter;
use crate::chat::python::numbers::Number;
use crate::chat::python::text::strip;

/// A text without white space around it and underscores within it.
fn digits(text: &str) -> String {
    strip(text, None, true, true).replace('_', "")
}

fn integer_of(text: &str, base: u32) -> Option<i128> {
    let text = digits(text).to_lowercase();
    let (sign, rest) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+').unwrap_or(&text)),
    };
    let prefix = match base {
        16 => "0x",
        8 => "0o",
        2 => "0b",
        _ => "",
    };
    let rest = rest.strip_prefix(prefix).unwrap_or(rest);
    let is_number = rest.starts_with(|char: char| char.is_ascii_alphanumeric());
    i128::from_str_radix(rest, base).ok().filter(|_| is_number).map(|number| sign * number)
}

fn float_of(text: &str) -> Option<f64> {
    digits(text).parse().ok()
}

fn whole(number: f64) -> Option<i128> {
    (number.is_finite() && number.abs() < 1e38).then_some(number.trunc() as i128)
}

/// An integer, or the default 0 where the value is none.
pub(super) fn int(_: &Meter, value: &Value, args: &Arguments) -> Result<Value, Error> {
    let base = u32::try_from(args.integer(1)?.unwrap_or(10)).ok();
    let base = base.filter(|base| (2..=36).contains(base)).ok_or_else(|| {
        Error::new(ErrorKind::InvalidOperation, "the base of 'int' is from 2 to 36")
    })?;
    let number = match (Number::of(value), value.as_str()) {
        (Some(Number::Integer(number)), _) => Some(number),
        (Some(Number::Float(number)), _) => whole(number),
        (None, Some(text)) => integer_of(text, base).or_else(|| whole(float_of(text)?)),
        _ => None,
    };
    Ok(number.map(Value::from).or_else(|| args.get(0).cloned()).unwrap_or_else(|| 0.into()))
}

/// A float, or the default 0.0 where the value is none.
pub(super) fn float(_: &Meter, value: &Value, args: &Arguments) -> Result<Value, Error> {
    let number = Number::of(value).map(Number::float).or_else(|| float_of(value.as_str()?));
    Ok(number.map(Value::from).or_else(|| args.get(0).cloned()).unwrap_or_else(|| 0.0.into()))
}

/// A number of bytes in words.
pub(super) fn file_size(_: &Meter, value: &Value, args: &Arguments) -> Result<Value, Error> {
    let number = Number::of(value).map(Number::float).or_else(|| float_of(value.as_str()?));
    let bytes =
        number.ok_or_else(|| Error::new(ErrorKind::InvalidOperation, "not a number of bytes"))?;
    let (base, units) = match args.flag(0) {
        true => (1024.0, ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB", "ZiB", "YiB"]),
        false => (1000.0, ["kB", "MB", "GB", "TB", "PB", "EB", "ZB", "YB"]),
    };
    if bytes == 1.0 {
        return Ok("1 Byte".into());
    }
    if bytes < base {
        return Ok(format!("{} Bytes", bytes.trunc()).into());
    }
    let mut unit = base;
    for name in units {
        unit *= base;
        if bytes < unit || name.starts_with('Y') {
            return Ok(format!("{:.1} {name}", base * bytes / unit).into());
        }
    }
    Ok(value.clone())
}
