//! The grammar of calls as elements whose values may be elements.

use serde_json::Value;

use super::super::Tree;
use super::super::signatures::{Kind, Place};
use super::calls::{Argument, label, mark, optional, sequence, texts, within};
use crate::structured::{Function, Grammar};

/// Levels of elements; deeper values are JSON.
const DEPTH_MAX: usize = 8;
/// Most items of a list with bounds that is written as elements.
const ITEMS_MAX: u64 = 64;

/// The call of a function.
pub(super) fn grammar(tree: &Tree, function: Function) -> Grammar {
    let head = mark(&format!("{}{}{}", tree.begin, function.name, tree.name_end));
    let schema = function.parameters.clone().unwrap_or_default();
    let of = Values { tree, function: &function };
    let members = of.members(Place::of(&schema), 0);
    sequence([head].into_iter().chain(members.into_iter().map(Some)).chain([mark(tree.end)]))
}

/// The values of the arguments of a function.
struct Values<'a> {
    tree: &'a Tree,
    function: &'a Function,
}

/// A value, and the element that it is in.
#[derive(Clone, Copy)]
struct Inside<'a> {
    name: &'a str,
    place: Place<'a>,
    depth: usize,
}

impl Values<'_> {
    /// The members of an object, in the order of its schema.
    fn members(&self, object: Place<'_>, depth: usize) -> Vec<Grammar> {
        let properties = object.schema().get("properties").and_then(Value::as_object);
        let required = object.schema().get("required").and_then(Value::as_array);
        let member = |name: &String| {
            let is_required = required.is_some_and(|names| names.iter().any(|known| known == name));
            let inside = Inside { name, place: object.member(name), depth: depth + 1 };
            optional(Argument { is_required, value: self.element(inside) })
        };
        properties.into_iter().flatten().map(|(name, _)| member(name)).collect()
    }

    fn element(&self, inside: Inside<'_>) -> Grammar {
        let open = mark(&self.tree.open(inside.name));
        sequence([open, Some(self.value(inside))])
    }

    /// A value, and the tag after it.
    fn value(&self, inside: Inside<'_>) -> Grammar {
        let Inside { name, place, depth } = inside;
        let close = self.tree.close(name);
        if let Some(texts) = texts(place.schema()) {
            return sequence([Some(Grammar::choice(texts)), mark(&close)]);
        }
        if place.kind() != Kind::Other {
            return Grammar::until(close);
        }
        let members = place.schema().get("properties").and_then(Value::as_object);
        let has_members = members.is_some_and(|members| !members.is_empty());
        let elements = match depth < DEPTH_MAX {
            true if place.is("object") && has_members => {
                Some(sequence(self.members(place, depth).into_iter().map(Some)))
            }
            true if place.is("array") => self.items(inside),
            _ => None,
        };
        let value = elements.unwrap_or_else(|| {
            let schema = match place.root() {
                Value::Object(root) => within(place.schema(), root),
                _ => place.schema().clone(),
            };
            Grammar::value(label(self.function, name), schema)
        });
        sequence([Some(value), mark(&close)])
    }

    /// The items of a list; `None` if its schema does not describe them, or asks for too many.
    fn items(&self, Inside { place, depth, .. }: Inside<'_>) -> Option<Grammar> {
        place.schema().get("items")?;
        let bound = |name: &str| place.schema().get(name).and_then(Value::as_u64);
        let (least, most) = (bound("minItems").unwrap_or(0), bound("maxItems"));
        if most == Some(0) || least.max(most.unwrap_or(0)) > ITEMS_MAX {
            return None;
        }
        let inside = Inside { name: self.tree.item, place: place.item(), depth: depth + 1 };
        let item = self.element(inside);
        let more = match most {
            None => Some(Grammar::repeated(item.clone())),
            Some(most) => (least..most).fold(None, |rest, _| {
                Some(Grammar::optional(sequence([Some(item.clone()), rest])))
            }),
        };
        let first = (0..least).map(|_| Some(item.clone()));
        Some(sequence(first.chain([more])))
    }
}
