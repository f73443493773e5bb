//! The filter `tojson` with the options of Python's `json.dumps`.

use std::fmt::Write as _;

use minijinja::value::ValueKind;
use minijinja::{Error, ErrorKind, Value};

use super::arguments::Arguments;
use super::filters::indentation;
use super::meter::{Meter, exceeded};
use super::python::repr;

/// Longest separator.
const SEPARATOR_MAX: usize = 16;

/// How values are written.
struct Writer<'a> {
    meter: &'a Meter,
    only_ascii: bool,
    sort_keys: bool,
    indent: Option<String>,
    between_items: String,
    after_key: String,
    out: String,
}

/// `tojson(ensure_ascii=false, indent=none, separators=none, sort_keys=false)`.
pub(super) fn to_json(meter: &Meter, value: &Value, args: &Arguments) -> Result<Value, Error> {
    let indent = args.some(1).map(|indent| indentation(Some(indent))).transpose()?;
    let separator = |at: usize, default: &str| -> Result<String, Error> {
        let Some(pair) = args.some(2) else { return Ok(default.to_owned()) };
        let text = pair.get_item_by_index(at)?;
        let text = text.as_str().ok_or_else(|| invalid("separators are two texts"))?;
        match text.len() > SEPARATOR_MAX {
            true => Err(exceeded(&format!("its separators have more than {SEPARATOR_MAX} bytes"))),
            false => Ok(text.to_owned()),
        }
    };
    let between_items = separator(0, if indent.is_some() { "," } else { ", " })?;
    let mut writer = Writer {
        meter,
        only_ascii: args.flag(0),
        sort_keys: args.flag(3),
        indent,
        between_items,
        after_key: separator(1, ": ")?,
        out: String::new(),
    };
    writer.value(value, 1)?;
    Ok(writer.out.into())
}

fn invalid(what: &str) -> Error {
    let what = format!("a value cannot be written as JSON: {what}");
    Error::new(ErrorKind::InvalidOperation, what)
}

impl Writer<'_> {
    fn value(&mut self, value: &Value, depth: usize) -> Result<(), Error> {
        match value.kind() {
            ValueKind::None => self.out.push_str("null"),
            ValueKind::Bool => self.out.push_str(if value.is_true() { "true" } else { "false" }),
            ValueKind::Number => self.out.push_str(&number(value)),
            ValueKind::String => self.text(value.as_str().unwrap_or_default()),
            ValueKind::Seq | ValueKind::Iterable => {
                let items: Vec<Value> = value.try_iter()?.collect();
                self.out.push('[');
                self.all(depth, items, |writer, item| writer.value(&item, depth + 1))?;
                self.out.push(']');
            }
            ValueKind::Map => {
                let mut keys: Vec<Value> = value.try_iter()?.collect();
                if self.sort_keys {
                    keys.sort();
                }
                self.out.push('{');
                self.all(depth, keys, |writer, key| {
                    writer.text(&key_text(&key)?);
                    writer.out.push_str(&writer.after_key);
                    writer.value(&value.get_item(&key)?, depth + 1)
                })?;
                self.out.push('}');
            }
            kind => return Err(invalid(&format!("it is {kind}"))),
        }
        self.meter.check_size(self.out.len() as u64)
    }

    /// Writes the elements of a list or dictionary, which are between its brackets.
    fn all(
        &mut self,
        depth: usize,
        items: Vec<Value>,
        mut write: impl FnMut(&mut Self, Value) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let is_empty = items.is_empty();
        for (at, item) in items.into_iter().enumerate() {
            if at > 0 {
                self.out.push_str(&self.between_items);
            }
            self.line(depth);
            write(self, item)?;
        }
        if !is_empty {
            self.line(depth - 1);
        }
        Ok(())
    }

    /// Begins a line, if there are lines.
    fn line(&mut self, depth: usize) {
        if let Some(indent) = &self.indent {
            self.out.push('\n');
            self.out.extend(std::iter::repeat_n(&**indent, depth));
        }
    }

    fn text(&mut self, text: &str) {
        self.out.push('"');
        for char in text.chars() {
            match char {
                '"' => self.out.push_str("\\\""),
                '\\' => self.out.push_str("\\\\"),
                '\n' => self.out.push_str("\\n"),
                '\r' => self.out.push_str("\\r"),
                '\t' => self.out.push_str("\\t"),
                '\u{8}' => self.out.push_str("\\b"),
                '\u{c}' => self.out.push_str("\\f"),
                '\0'..='\u{1f}' => self.escaped(char),
                char if self.only_ascii && !(' '..='~').contains(&char) => self.escaped(char),
                char => self.out.push(char),
            }
        }
        self.out.push('"');
    }

    /// A character as its UTF-16 code units.
    fn escaped(&mut self, char: char) {
        for unit in char.encode_utf16(&mut [0; 2]) {
            _ = write!(self.out, "\\u{unit:04x}");
        }
    }
}

fn number(value: &Value) -> String {
    if value.is_integer() {
        return value.to_string();
    }
    match f64::try_from(value.clone()).unwrap_or(f64::NAN) {
        number if number.is_nan() => "NaN".to_owned(),
        number if number.is_infinite() => {
            if number > 0.0 { "Infinity" } else { "-Infinity" }.to_owned()
        }
        number => repr::float(number),
    }
}

/// The text of a key: Python has keys that are no texts.
fn key_text(key: &Value) -> Result<String, Error> {
    match key.kind() {
        ValueKind::String => Ok(key.as_str().unwrap_or_default().to_owned()),
        ValueKind::Number => Ok(number(key)),
        ValueKind::Bool => Ok(if key.is_true() { "true" } else { "false" }.to_owned()),
        ValueKind::None => Ok("null".to_owned()),
        kind => Err(invalid(&format!("a key is {kind}"))),
    }
}
