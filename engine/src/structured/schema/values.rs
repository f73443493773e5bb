//! Values of keywords: bounds, lengths, constants, patterns and formats.

use llguidance::derivre::RegexBuilder;
use llguidance::regex_to_lark;
use serde_json::{Map, Number, Value, json};

use super::keywords::{NARROWING, WITH_SCHEMAS};

/// Formats that the library knows.
const FORMATS: [&str; 10] =
    ["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid", "uri"];

/// The largest number below 2⁶³ that a double holds. Bounds of integers are kept within it.
const INTEGER_MAX: i64 = 9_223_372_036_854_774_784;

/// The largest length that counts: no answer is longer.
const LENGTH_MAX: f64 = u32::MAX as f64;

/// What becomes of a keyword.
#[derive(Debug, PartialEq)]
pub(super) enum Kept {
    /// It is followed.
    As(Value),
    /// It forbids nothing that an answer could be, or others follow it.
    Needless,
    /// Other keywords say the same.
    Instead(Map<String, Value>),
    /// It cannot be followed, or only in part: it is named.
    Ignored(Option<Value>),
}

/// What becomes of a keyword of the schema `members`; `None` for one whose value has schemas.
///
/// # Errors
/// When its value is invalid, or cannot be followed.
pub(super) fn kept(
    keyword: &str,
    value: &Value,
    members: &Map<String, Value>,
) -> Result<Option<Kept>, String> {
    let kept = match (keyword, value) {
        ("type" | "required" | "multipleOf", _) => Kept::As(value.clone()),
        ("const" | "enum", _) => {
            constant(value)?;
            Kept::As(value.clone())
        }
        ("minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum", _) => {
            let is_integer = match members.get("type") {
                Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "integer"),
                kind => kind.is_some_and(|kind| kind == "integer"),
            };
            bound(keyword, value, is_integer)?
        }
        (
            "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties" | "maxProperties",
            _,
        ) => length(keyword, value)?,
        ("pattern", _) => pattern(value)?,
        ("format", _) => format(value),
        ("uniqueItems", Value::Bool(false)) | ("unevaluatedProperties" | "propertyNames", _) => {
            Kept::Needless
        }
        (keyword, _) if NARROWING.contains(&keyword) => Kept::Ignored(None),
        (keyword, _) if WITH_SCHEMAS.contains(&keyword) => return Ok(None),
        // Notes for readers, and keywords that the standard does not know.
        _ => Kept::Needless,
    };
    Ok(Some(kept))
}

/// A bound of numbers.
///
/// # Errors
/// When no integer of 64 bits is within it.
fn bound(keyword: &str, value: &Value, is_integer: bool) -> Result<Kept, String> {
    let Some(bound) = value.as_f64().filter(|_| is_integer) else {
        return Ok(Kept::As(value.clone()));
    };
    let most = INTEGER_MAX as f64;
    let (beyond, clamped) = match keyword {
        "maximum" | "exclusiveMaximum" => (bound < -most, (bound > most).then_some(INTEGER_MAX)),
        _ => (bound > most, (bound < -most).then_some(-INTEGER_MAX)),
    };
    if beyond {
        return Err(format!("{keyword} is {value}, which no integer of 64 bits reaches"));
    }
    // An integer, since a grammar's text has not all digits of a double.
    Ok(Kept::As(clamped.map_or_else(|| value.clone(), |bound| json!(bound))))
}

/// Bounds of the integers of the schema `members` where it has none, so that an answer has no more digits than 64 bits: a model
/// that repeats a digit would never end.
pub(super) fn integer_bounds(members: &Map<String, Value>) -> Map<String, Value> {
    let kinds = match members.get("type") {
        Some(Value::Array(kinds)) => kinds.as_slice(),
        Some(kind) => std::slice::from_ref(kind),
        None => &[],
    };
    let is = |name: &str| kinds.iter().any(|kind| kind == name);
    let has = |keyword: &str| members.contains_key(keyword);
    let mut bounds = Map::new();
    if is("integer") && !is("number") && !has("const") && !has("enum") {
        if !has("minimum") && !has("exclusiveMinimum") {
            bounds.insert("minimum".to_owned(), json!(-INTEGER_MAX));
        }
        if !has("maximum") && !has("exclusiveMaximum") {
            bounds.insert("maximum".to_owned(), json!(INTEGER_MAX));
        }
    }
    bounds
}

/// A length or a number of parts, which may be written as `2.0`.
///
/// # Errors
/// When it is no whole number, or so large a minimum that no answer reaches it.
fn length(keyword: &str, value: &Value) -> Result<Kept, String> {
    let whole = value.as_f64().filter(|length| *length >= 0.0 && length.fract() == 0.0);
    let Some(length) = whole else {
        return Err(format!("{keyword} is {value}, but must be a whole number"));
    };
    match length > LENGTH_MAX {
        false => Ok(Kept::As(json!(length as u64))),
        true if keyword.starts_with("max") => Ok(Kept::Needless),
        true => Err(format!("{keyword} is {value}, and no answer is so long")),
    }
}

/// Checks that the library writes a constant as it is.
///
/// # Errors
/// When it has a number with more digits than a double holds.
fn constant(value: &Value) -> Result<(), String> {
    match value {
        Value::Number(number) if !is_exact(number) => Err(format!(
            "the constant {number} has more digits than numbers of schemas may have (2^53)"
        )),
        Value::Array(values) => values.iter().try_for_each(constant),
        Value::Object(members) => members.values().try_for_each(constant),
        _ => Ok(()),
    }
}

/// Whether a double holds a number. What is no integer of 64 bits has been read as one.
fn is_exact(number: &Number) -> bool {
    const WHOLE_MAX: u64 = 1 << 53;
    match (number.as_i64(), number.as_u64()) {
        (Some(number), _) => number.unsigned_abs() <= WHOLE_MAX,
        (None, Some(_)) => false,
        (None, None) => number.as_f64().is_some_and(|number| number.abs() <= WHOLE_MAX as f64),
    }
}

/// A regular expression for strings. One with look-around or references to groups is followed without them as far
/// as they precede the rest.
///
/// # Errors
/// When it is invalid.
pub(super) fn pattern(value: &Value) -> Result<Kept, String> {
    let Some(pattern) = value.as_str() else {
        return Err(format!("the pattern {value} is no text"));
    };
    let Err(reason) = compiled(pattern) else { return Ok(Kept::As(value.clone())) };
    match without_first_looks(pattern) {
        Some(rest) if compiled(&rest).is_ok() => Ok(Kept::Ignored(Some(rest.into()))),
        _ if is_beyond_regular(pattern) => Ok(Kept::Ignored(None)),
        _ => Err(format!("the pattern '{pattern}' is invalid or not supported: {reason}")),
    }
}

/// Whether the library can use a regular expression.
fn compiled(pattern: &str) -> Result<(), String> {
    let made = RegexBuilder::new().mk_regex_for_serach(&regex_to_lark(pattern, "dw"));
    made.map(|_| ()).map_err(|error| error.to_string())
}

/// Openings of groups that look around.
const LOOKS: [&str; 4] = ["(?!", "(?=", "(?<!", "(?<="];

/// An expression without the groups that look ahead at its beginning; `None` if it has none there.
fn without_first_looks(pattern: &str) -> Option<String> {
    let (anchor, mut rest) = match pattern.strip_prefix('^') {
        Some(rest) => ("^", rest),
        None => ("", pattern),
    };
    let all = rest.len();
    while LOOKS[..2].iter().any(|look| rest.starts_with(look)) {
        rest = &rest[group_end(rest)?..];
        rest = rest.strip_prefix('^').unwrap_or(rest);
    }
    (rest.len() < all).then(|| format!("{anchor}{rest}"))
}

/// The end of the group that begins `pattern`.
fn group_end(pattern: &str) -> Option<usize> {
    let (mut depth, mut is_class, mut is_escaped) = (0_usize, false, false);
    for (at, byte) in pattern.bytes().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b']' => is_class = false,
            _ if is_class => {}
            b'[' => is_class = true,
            b'(' => depth += 1,
            b')' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(at + 1);
        }
    }
    None
}

/// Whether an expression looks around, has word boundaries, or refers to its groups, which no automaton does.
fn is_beyond_regular(pattern: &str) -> bool {
    let mut escaped = false;
    for (at, char) in pattern.char_indices() {
        match char {
            '1'..='9' | 'k' | 'b' | 'B' if escaped => return true,
            '(' if !escaped && LOOKS.iter().any(|look| pattern[at..].starts_with(look)) => {
                return true;
            }
            _ => {}
        }
        escaped = char == '\\' && !escaped;
    }
    false
}

/// A format of strings; by the standard, one that is not known says nothing about what is valid.
fn format(value: &Value) -> Kept {
    let name = value.as_str().unwrap_or_default();
    match name.strip_prefix("uuid").map(str::parse::<u8>) {
        Some(Ok(version @ 1..=8)) => {
            let of_version = format!(
                "^[0-9a-f]{{8}}-[0-9a-f]{{4}}-{version}[0-9a-f]{{3}}-[89ab][0-9a-f]{{3}}-[0-9a-f]{{12}}$"
            );
            Kept::Instead(Map::from_iter([("pattern".to_owned(), of_version.into())]))
        }
        _ if FORMATS.contains(&name) => Kept::As(value.clone()),
        _ => Kept::Ignored(None),
    }
}
