//! Filters, tests and functions of lists and dictionaries.

use minijinja::value::{Kwargs, Rest, ValueKind, ValueOrKwargs, from_args};
use minijinja::{Error, ErrorKind, Value, filters, functions};

use crate::chat::arguments::Arguments;
use crate::chat::meter::Meter;
use crate::chat::python::repr;

fn failed(what: &'static str) -> Error {
    Error::new(ErrorKind::InvalidOperation, what)
}

pub(super) fn default(_: &Meter, value: &Value, args: &Arguments) -> Result<Value, Error> {
    let is_missing = value.is_undefined() || (args.flag(1) && !value.is_true());
    Ok(if is_missing { args.get(0).cloned().unwrap_or_else(|| "".into()) } else { value.clone() })
}

/// Number of elements or characters; what is missing has none.
pub(super) fn length(value: &Value) -> Result<usize, Error> {
    if value.is_undefined() { Ok(0) } else { filters::length(value) }
}

/// The elements from the last one on; of a dictionary, its keys.
pub(super) fn reverse(value: &Value) -> Result<Value, Error> {
    if value.kind() != ValueKind::Map {
        return filters::reverse(value);
    }
    let mut keys: Vec<Value> = value.try_iter()?.collect();
    keys.reverse();
    Ok(keys.into())
}

/// The pairs of a dictionary.
pub(super) fn items(_: &Meter, value: &Value, _: &Arguments) -> Result<Value, Error> {
    match value.is_undefined() {
        true => Ok(Vec::<Value>::new().into()),
        false => filters::items(value),
    }
}

pub(super) fn last(_: &Meter, value: &Value, _: &Arguments) -> Result<Value, Error> {
    match value.as_str() {
        Some(text) => Ok(text.chars().next_back().map(Value::from).unwrap_or_default()),
        None => Ok(value.try_iter()?.last().unwrap_or_default()),
    }
}

/// An attribute, which entries of dictionaries are not.
pub(super) fn attr(_: &Meter, value: &Value, args: &Arguments) -> Result<Value, Error> {
    let name = args.need_text(0)?;
    match value.as_object() {
        Some(object) if object.type_name().ends_with("::Namespace") => value.get_attr(name),
        Some(_) if value.kind() != ValueKind::Map => value.get_attr(name),
        _ => Ok(Value::UNDEFINED),
    }
}

fn count(args: &Arguments, what: &'static str) -> Result<usize, Error> {
    let count = args.integer(0)?.and_then(|count| usize::try_from(count).ok());
    count.filter(|count| *count > 0).ok_or_else(|| failed(what))
}

/// Lists of so many elements each; the last one is filled up.
pub(super) fn batch(meter: &Meter, value: &Value, args: &Arguments) -> Result<Value, Error> {
    let length = count(args, "'batch' needs the number of elements of a list, above 0")?;
    let items: Vec<Value> = value.try_iter()?.collect();
    let mut lists: Vec<Vec<Value>> = items.chunks(length).map(<[Value]>::to_vec).collect();
    if let (Some(fill), Some(last)) = (args.some(1), lists.last_mut()) {
        meter.check_items(length as u64)?;
        last.resize(length, fill.clone());
    }
    Ok(lists.into_iter().map(Value::from).collect())
}

/// So many lists of elements in order; those that are shorter get one more.
pub(super) fn slice(meter: &Meter, value: &Value, args: &Arguments) -> Result<Value, Error> {
    let slices = count(args, "'slice' needs the number of lists, above 0")?;
    meter.check_items(slices as u64)?;
    let items: Vec<Value> = value.try_iter()?.collect();
    let (each, longer) = (items.len() / slices, items.len() % slices);
    let mut rest = items.into_iter();
    let mut lists = Vec::new();
    for at in 0..slices {
        let mut list: Vec<Value> = rest.by_ref().take(each + usize::from(at < longer)).collect();
        list.extend(args.some(1).filter(|_| at >= longer).cloned());
        lists.push(Value::from(list));
    }
    Ok(lists.into())
}

pub(super) fn join(meter: &Meter, value: &Value, args: &Arguments) -> Result<Value, Error> {
    let between = args.some(0).map(repr::text).unwrap_or_default();
    let mut text = String::new();
    if value.is_undefined() {
        return Ok("".into());
    }
    for (at, item) in value.try_iter()?.enumerate() {
        text.push_str(if at > 0 { &between } else { "" });
        let item = match args.some(1) {
            Some(attribute) => super::order::attribute_of(&item, attribute)?,
            None => item,
        };
        match item.as_str() {
            Some(item) => text.push_str(item),
            None => text.push_str(&repr::text(&item)),
        }
        meter.check_size(text.len() as u64)?;
    }
    Ok(text.into())
}

/// `dict(pairs or dictionary, name=value, …)`.
pub(super) fn dict(args: Rest<ValueOrKwargs>) -> Result<Value, Error> {
    let (positional, named): (Rest<Value>, Kwargs) = from_args(&args.into_values())?;
    let first = match &positional[..] {
        [] => None,
        [of] if of.kind() == ValueKind::Map => Some(of.clone()),
        [of] => {
            let pairs = of.try_iter()?.map(|pair| {
                let key = pair.get_item_by_index(0)?;
                let key =
                    key.as_str().ok_or_else(|| failed("keys of pairs of 'dict' are texts"))?;
                Ok((key.to_owned(), pair.get_item_by_index(1)?))
            });
            Some(named_values(pairs.collect::<Result<Kwargs, Error>>()?)?)
        }
        _ => return Err(failed("'dict' takes one dictionary or list of pairs")),
    };
    // Options that are taken one by one keep the engine from calling them unknown.
    let named = named.args().map(|name| Ok((name.to_owned(), named.get(name)?)));
    functions::dict(first, named.collect::<Result<Kwargs, Error>>()?)
}

/// A dictionary of named values.
pub(super) fn named_values(named: Kwargs) -> Result<Value, Error> {
    functions::dict(None, named)
}

/// Whether a value has a length and elements by position or key: texts and dictionaries do.
pub(super) fn is_sequence(value: &Value) -> bool {
    match value.kind() {
        ValueKind::Seq | ValueKind::Map | ValueKind::String | ValueKind::Undefined => true,
        ValueKind::Iterable => value.len().is_some(),
        _ => false,
    }
}

pub(super) fn is_iterable(value: &Value) -> bool {
    !value.is_none() && value.try_iter().is_ok()
}

/// True and false are numbers in Python.
pub(super) fn is_number(value: &Value) -> bool {
    matches!(value.kind(), ValueKind::Number | ValueKind::Bool)
}
