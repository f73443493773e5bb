//! Operators that [`rules`](super::super::rules) turns into calls: those that texts have in Python, and those whose
//! result may be much larger than their operands.

use minijinja::value::{Rest, Tuple, ValueKind};
use minijinja::{Environment, Error, ErrorKind, State, Value};

use crate::chat::meter::{Meter, metered};
use crate::chat::names::{CONCAT, POWER, PRODUCT, REMAINDER, SLICE, SUM};
use crate::chat::python::format::percent;
use crate::chat::python::numbers::{self, Number};
use crate::chat::python::repr;

type Operator = fn(&Meter, &Value, &Value) -> Result<Value, Error>;

pub(super) fn add_all(environment: &mut Environment<'_>) {
    let mut add = |name: &'static str, operator: Operator| {
        environment.add_function(name, move |state: &State, left: Value, right: Value| {
            metered(state, |meter| operator(meter, &left, &right))
        });
    };
    add(PRODUCT, product);
    add(REMAINDER, remainder);
    add(POWER, power);
    environment.add_function(SLICE, |state: &State, args: Rest<Value>| {
        metered(state, |meter| slice(meter, &args))
    });
    environment.add_function(SUM, |state: &State, parts: Rest<Value>| {
        metered(state, |meter| sum(meter, &parts))
    });
    environment.add_function(CONCAT, |state: &State, parts: Rest<Value>| {
        metered(state, |meter| concat(meter, &parts))
    });
}

/// `a + b + …`: numbers, texts or lists.
fn sum(meter: &Meter, parts: &[Value]) -> Result<Value, Error> {
    parts.iter().try_for_each(|part| meter.read(part))?;
    let is_plain = |part: &Value| part.as_str().is_some() && !part.is_safe();
    if parts.iter().all(is_plain) {
        let texts: Vec<&str> = parts.iter().filter_map(Value::as_str).collect();
        meter.check_size(texts.iter().map(|text| text.len() as u64).sum())?;
        return Ok(texts.concat().into());
    }
    let Some((first, rest)) = parts.split_first() else { return Ok(Value::UNDEFINED) };
    rest.iter().try_fold(first.clone(), |sum, part| added(meter, &sum, part))
}

fn added(meter: &Meter, left: &Value, right: &Value) -> Result<Value, Error> {
    if let (Some(left), Some(right)) = (Number::of(left), Number::of(right)) {
        return numbers::sum(left, right);
    }
    if let (Some(text), Some(more)) = (left.as_str(), right.as_str()) {
        meter.check_size(text.len() as u64 + more.len() as u64)?;
        return Ok(match (left.is_safe(), right.is_safe()) {
            (false, false) => format!("{text}{more}").into(),
            // What is added to a safe text is escaped.
            (is_safe, other_is_safe) => Value::from_safe_string(format!(
                "{}{}",
                if is_safe { text.to_owned() } else { super::markup::escaped(text) },
                if other_is_safe { more.to_owned() } else { super::markup::escaped(more) },
            )),
        });
    }
    let is_list = |value: &Value| matches!(value.kind(), ValueKind::Seq | ValueKind::Iterable);
    if !is_list(left) || !is_list(right) || left.is_tuple() != right.is_tuple() {
        return Err(unsupported("+", left, right));
    }
    meter.check_items((left.len().unwrap_or(0) + right.len().unwrap_or(0)) as u64)?;
    let items: Vec<Value> = left.try_iter()?.chain(right.try_iter()?).collect();
    Ok(if left.is_tuple() { Value::from(Tuple::from(items)) } else { items.into() })
}

/// `left * right`: numbers, or a text or list several times.
fn product(meter: &Meter, left: &Value, right: &Value) -> Result<Value, Error> {
    let (repeated, times) = match (Number::of(left), Number::of(right)) {
        (Some(left), Some(right)) => return numbers::product(left, right),
        (None, Some(Number::Integer(times))) => (left, times),
        (Some(Number::Integer(times)), None) => (right, times),
        _ => return Err(unsupported("*", left, right)),
    };
    let times = usize::try_from(times.max(0)).unwrap_or(usize::MAX);
    let size = meter.measure_read(repeated)?;
    let all = |part: u64| part.saturating_mul(times as u64);
    meter.check_size(all(size.bytes))?;
    meter.charge(all(size.work()))?;
    if let Some(text) = repeated.as_str() {
        return Ok(text.repeat(times).into());
    }
    meter.check_items(all(size.items))?;
    if !matches!(repeated.kind(), ValueKind::Seq | ValueKind::Iterable) {
        return Err(unsupported("*", left, right));
    }
    let items: Vec<Value> = repeated.try_iter()?.collect();
    let count = items.len() * times;
    let items: Vec<Value> = items.into_iter().cycle().take(count).collect();
    Ok(if repeated.is_tuple() { Value::from(Tuple::from(items)) } else { items.into() })
}

/// `left % right`: numbers, or a text with fields.
fn remainder(meter: &Meter, left: &Value, right: &Value) -> Result<Value, Error> {
    match (Number::of(left), Number::of(right), left.as_str()) {
        (Some(left), Some(right), _) => numbers::remainder(left, right),
        (None, _, Some(text)) => percent(meter, text, right),
        _ => Err(unsupported("%", left, right)),
    }
}

/// `left ** right`.
fn power(_: &Meter, left: &Value, right: &Value) -> Result<Value, Error> {
    match (Number::of(left), Number::of(right)) {
        (Some(left), Some(right)) => numbers::power(left, right),
        _ => Err(unsupported("**", left, right)),
    }
}

/// `a ~ b ~ …`: the texts of all values.
fn concat(meter: &Meter, parts: &[Value]) -> Result<Value, Error> {
    let mut text = String::new();
    for part in parts {
        meter.read(part)?;
        match part.as_str() {
            Some(part) => text.push_str(part),
            None => text.push_str(&repr::text(part)),
        }
        meter.check_size(text.len() as u64)?;
    }
    Ok(text.into())
}

/// `value[start:stop:step]`: characters of a text, or elements of a list. Other values have no slices.
fn slice(meter: &Meter, args: &[Value]) -> Result<Value, Error> {
    args.iter().try_for_each(|arg| meter.read(arg))?;
    let value = args.first().cloned().unwrap_or_default();
    let number = |at: usize| match args.get(at).filter(|number| !number.is_none()) {
        None => Ok(None),
        Some(number) => number.as_i64().map(Some).ok_or_else(|| {
            Error::new(ErrorKind::InvalidOperation, "a border of a slice is not an integer")
        }),
    };
    let slice = Slice { start: number(1)?, stop: number(2)?, step: number(3)?.unwrap_or(1) };
    if slice.step == 0 {
        return Err(Error::new(ErrorKind::InvalidOperation, "the step of a slice is 0"));
    }
    if let Some(text) = value.as_str() {
        let chars: Vec<char> = text.chars().collect();
        let picked = slice.positions(chars.len());
        return Ok(picked.into_iter().map(|at| chars[at]).collect::<String>().into());
    }
    if !matches!(value.kind(), ValueKind::Seq | ValueKind::Iterable) {
        return Ok(Value::UNDEFINED);
    }
    let items: Vec<Value> = value.try_iter()?.collect();
    let picked = slice.positions(items.len());
    let picked: Vec<Value> = picked.into_iter().map(|at| items[at].clone()).collect();
    Ok(if value.is_tuple() { Value::from(Tuple::from(picked)) } else { picked.into() })
}

/// `[start:stop:step]`; the step is not 0.
struct Slice {
    start: Option<i64>,
    stop: Option<i64>,
    step: i64,
}

impl Slice {
    /// The positions of the slice among `length` items, in order.
    fn positions(&self, length: usize) -> Vec<usize> {
        let (length, step) = (length as i64, self.step);
        let (least, most) = if step > 0 { (0, length) } else { (-1, length - 1) };
        let border = |given: Option<i64>, default: i64| match given {
            None => default,
            Some(at) if at < 0 => at.saturating_add(length).max(least),
            Some(at) => at.min(most),
        };
        let (first, end) = if step > 0 { (least, most) } else { (most, least) };
        let (mut at, stop) = (border(self.start, first), border(self.stop, end));
        let mut positions = Vec::new();
        while if step > 0 { at < stop } else { at > stop } {
            positions.push(at as usize);
            at = at.saturating_add(step);
        }
        positions
    }
}

fn unsupported(operator: &str, left: &Value, right: &Value) -> Error {
    let what = format!(
        "tried to use {operator} on unsupported types {} and {}",
        left.kind(),
        right.kind()
    );
    Error::new(ErrorKind::InvalidOperation, what)
}
