//! Operators and methods of Python's numbers.

use minijinja::value::ValueKind;
use minijinja::{Error, ErrorKind, Value};

/// A number, as operators see it.
#[derive(Clone, Copy, Debug)]
pub(in crate::chat) enum Number {
    Integer(i128),
    Float(f64),
}

impl Number {
    /// The number of a value; true and false are 1 and 0.
    pub(in crate::chat) fn of(value: &Value) -> Option<Number> {
        match value.kind() {
            ValueKind::Bool => Some(Number::Integer(value.is_true().into())),
            ValueKind::Number if value.is_integer() => {
                i128::try_from(value.clone()).ok().map(Number::Integer)
            }
            ValueKind::Number => f64::try_from(value.clone()).ok().map(Number::Float),
            _ => None,
        }
    }

    pub(in crate::chat) fn float(self) -> f64 {
        match self {
            Number::Integer(value) => value as f64,
            Number::Float(value) => value,
        }
    }
}

fn failed(what: &str) -> Error {
    Error::new(ErrorKind::InvalidOperation, what.to_owned())
}

fn integer(value: Option<i128>) -> Result<Value, Error> {
    value.map(Value::from).ok_or_else(|| failed("an integer is too large"))
}

/// `left + right` of numbers.
pub(in crate::chat) fn sum(left: Number, right: Number) -> Result<Value, Error> {
    match (left, right) {
        (Number::Integer(left), Number::Integer(right)) => integer(left.checked_add(right)),
        (left, right) => Ok((left.float() + right.float()).into()),
    }
}

/// `left * right` of numbers.
pub(in crate::chat) fn product(left: Number, right: Number) -> Result<Value, Error> {
    match (left, right) {
        (Number::Integer(left), Number::Integer(right)) => integer(left.checked_mul(right)),
        (left, right) => Ok((left.float() * right.float()).into()),
    }
}

/// `left % right` of numbers: the result has the sign of `right`.
pub(in crate::chat) fn remainder(left: Number, right: Number) -> Result<Value, Error> {
    if right.float() == 0.0 {
        return Err(failed("division by zero"));
    }
    match (left, right) {
        (Number::Integer(left), Number::Integer(right)) => {
            let rest = left.checked_rem(right).unwrap_or(0);
            let is_other_sign = rest != 0 && (rest < 0) != (right < 0);
            Ok(Value::from(if is_other_sign { rest + right } else { rest }))
        }
        (left, right) => {
            let (left, right) = (left.float(), right.float());
            let rest = left % right;
            let is_other_sign = rest != 0.0 && (rest < 0.0) != (right < 0.0);
            Ok(Value::from(if is_other_sign { rest + right } else { rest }))
        }
    }
}

/// `left ** right` of numbers.
pub(in crate::chat) fn power(left: Number, right: Number) -> Result<Value, Error> {
    if left.float() == 0.0 && right.float() < 0.0 {
        return Err(failed("zero cannot be raised to a negative power"));
    }
    match (left, right) {
        (Number::Integer(base), Number::Integer(exponent)) if exponent >= 0 => {
            integer(u32::try_from(exponent).ok().and_then(|exponent| base.checked_pow(exponent)))
        }
        (left, right) => Ok(left.float().powf(right.float()).into()),
    }
}

/// Calls a method of a number.
pub(super) fn call(value: &Value, method: &str) -> Result<Value, Error> {
    match (Number::of(value), method) {
        (Some(Number::Integer(value)), "bit_length") => {
            Ok((i128::BITS - value.unsigned_abs().leading_zeros()).into())
        }
        (Some(Number::Integer(value)), "bit_count") => Ok(value.unsigned_abs().count_ones().into()),
        (Some(Number::Float(value)), "is_integer") => Ok((value.fract() == 0.0).into()),
        (Some(Number::Integer(_)), "is_integer") => Ok(true.into()),
        _ => Err(Error::from(ErrorKind::UnknownMethod)),
    }
}
