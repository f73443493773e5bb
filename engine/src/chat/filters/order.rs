//! Filters that compare the elements of a list with each other, by themselves or by an attribute.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::sync::Arc;

use minijinja::value::{Enumerator, Object, ObjectRepr, Tuple, ValueKind};
use minijinja::{Error, ErrorKind, Value};

use crate::chat::arguments::Arguments;
use crate::chat::meter::Meter;

/// The attribute of an element: a name, a number, or several of them between dots.
pub(super) fn attribute_of(item: &Value, attribute: &Value) -> Result<Value, Error> {
    let Some(path) = attribute.as_str() else { return item.get_item(attribute) };
    path.split('.').try_fold(item.clone(), |value, part| match part.parse::<usize>() {
        Ok(at) => value.get_item(&at.into()),
        Err(_) if value.is_undefined() => Ok(value),
        Err(_) => value.get_item(&part.into()),
    })
}

/// What elements are compared by: several attributes between commas, in lower case unless case matters.
fn key_of(
    item: &Value,
    attribute: Option<&Value>,
    case_sensitive: bool,
) -> Result<Vec<Value>, Error> {
    let lower = |value: Value| match value.as_str() {
        Some(text) if !case_sensitive => text.to_lowercase().into(),
        _ => value,
    };
    let Some(attribute) = attribute else { return Ok(vec![lower(item.clone())]) };
    let Some(names) = attribute.as_str() else {
        return Ok(vec![lower(attribute_of(item, attribute)?)]);
    };
    names.split(',').map(|name| Ok(lower(attribute_of(item, &name.into())?))).collect()
}

/// The elements with their keys.
fn keyed(
    meter: &Meter,
    value: &Value,
    attribute: Option<&Value>,
    case_sensitive: bool,
) -> Result<Vec<(Vec<Value>, Value)>, Error> {
    let size = meter.measure_read(value)?;
    let items: Vec<Value> = value.try_iter()?.collect();
    meter.charge(size.work().saturating_mul(u64::from(items.len().max(2).ilog2())))?;
    let keyed = |item: Value| Ok((key_of(&item, attribute, case_sensitive)?, item));
    items.into_iter().map(keyed).collect()
}

/// Sorts, so that equal elements keep their order, also in reverse.
fn sorted(mut keyed: Vec<(Vec<Value>, Value)>, reverse: bool) -> Vec<Value> {
    keyed.sort_by(|(a, _), (b, _)| if reverse { b.cmp(a) } else { a.cmp(b) });
    keyed.into_iter().map(|(_, item)| item).collect()
}

pub(super) fn sort(meter: &Meter, value: &Value, args: &Arguments) -> Result<Value, Error> {
    let keyed = keyed(meter, value, args.some(2), args.flag(1))?;
    Ok(sorted(keyed, args.flag(0)).into())
}

pub(super) fn dictsort(meter: &Meter, value: &Value, args: &Arguments) -> Result<Value, Error> {
    if value.kind() != ValueKind::Map {
        return Err(Error::new(ErrorKind::InvalidOperation, "'dictsort' sorts a dictionary"));
    }
    let by = match args.text(1)? {
        None | Some("key") => 0,
        Some("value") => 1,
        Some(_) => {
            return Err(Error::new(
                ErrorKind::InvalidOperation,
                "'dictsort' sorts by key or value",
            ));
        }
    };
    let pairs = value.try_iter()?.map(|key| {
        let value = value.get_item(&key)?;
        Ok(Value::from(Tuple::from(vec![key, value])))
    });
    let pairs: Value = pairs.collect::<Result<Vec<Value>, Error>>()?.into();
    let keyed = keyed(meter, &pairs, Some(&by.into()), args.flag(0))?;
    Ok(sorted(keyed, args.flag(2)).into())
}

pub(super) fn unique(meter: &Meter, value: &Value, args: &Arguments) -> Result<Value, Error> {
    let mut seen = HashSet::new();
    let keyed = keyed(meter, value, args.some(1), args.flag(0))?;
    Ok(keyed.into_iter().filter_map(|(key, item)| seen.insert(key).then_some(item)).collect())
}

/// The first of the smallest elements.
pub(super) fn least(meter: &Meter, value: &Value, args: &Arguments) -> Result<Value, Error> {
    extreme(meter, value, args, Ordering::Less)
}

/// The first of the largest elements.
pub(super) fn greatest(meter: &Meter, value: &Value, args: &Arguments) -> Result<Value, Error> {
    extreme(meter, value, args, Ordering::Greater)
}

fn extreme(
    meter: &Meter,
    value: &Value,
    args: &Arguments,
    wanted: Ordering,
) -> Result<Value, Error> {
    let keyed = keyed(meter, value, args.some(1), args.flag(0))?;
    let found = keyed.into_iter().reduce(|best, item| match item.0.cmp(&best.0) {
        order if order == wanted => item,
        _ => best,
    });
    Ok(found.map(|(_, item)| item).unwrap_or_default())
}

/// Elements of one key: a pair, whose parts also have names.
#[derive(Debug)]
struct Group {
    grouper: Value,
    list: Value,
}

impl Object for Group {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Seq
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        match (key.as_usize(), key.as_str()) {
            (Some(0), None) | (None, Some("grouper")) => Some(self.grouper.clone()),
            (Some(1), None) | (None, Some("list")) => Some(self.list.clone()),
            _ => None,
        }
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Seq(2)
    }
}

/// Groups of elements with the same attribute, sorted by it. A group is called as its first element.
pub(super) fn groupby(meter: &Meter, value: &Value, args: &Arguments) -> Result<Value, Error> {
    let attribute = args.need(0)?;
    let of_item = |item: &Value| {
        let found = attribute_of(item, attribute)?;
        let default = args.get(1).filter(|_| found.is_undefined());
        Ok::<_, Error>(default.cloned().unwrap_or(found))
    };
    let pairs =
        value.try_iter()?.map(|item| Ok(Value::from(Tuple::from(vec![of_item(&item)?, item]))));
    let pairs: Value = pairs.collect::<Result<Vec<Value>, Error>>()?.into();
    let mut keyed = keyed(meter, &pairs, Some(&0.into()), args.flag(2))?;
    keyed.sort_by(|(a, _), (b, _)| a.cmp(b));
    let same = |a: &(Vec<Value>, Value), b: &(Vec<Value>, Value)| a.0 == b.0;
    let groups = keyed.chunk_by(same).filter_map(|group| {
        let part = |pair: &Value, at: usize| pair.get_item_by_index(at).unwrap_or_default();
        let grouper = part(&group.first()?.1, 0);
        let list: Value = group.iter().map(|(_, pair)| part(pair, 1)).collect();
        Some(Value::from_object(Group { grouper, list }))
    });
    Ok(groups.collect())
}
