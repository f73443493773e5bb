//! The grammar of calls as elements whose values may be elements.

use std::cell::Cell;

use serde_json::{Map, Value};

use super::super::Tree;
use super::super::signatures::{Kind, Place};
use super::calls::{Argument, label, mark, optional, sequence, texts, within};
use crate::structured::{Function, Grammar};

/// Levels of elements; deeper values are JSON.
const DEPTH_MAX: usize = 8;
/// Most items of a list with bounds that is written as elements.
const ITEMS_MAX: u64 = 64;
/// Most elements of the grammar of a call; values beyond them are JSON.
const ELEMENTS_MAX: usize = 2000;

/// The call of a function.
pub(super) fn grammar(tree: &Tree, function: Function) -> Grammar {
    let head = mark(&format!("{}{}{}", tree.begin, function.name, tree.name_end));
    let schema = function.parameters.clone().unwrap_or_default();
    let of = Values { tree, function: &function, left: Cell::new(ELEMENTS_MAX) };
    let members = of.members(Place::of(&schema), Level { depth: 0, copies: 1 });
    sequence([head].into_iter().chain(members.into_iter().map(Some)).chain([mark(tree.end)]))
}

/// The values of the arguments of a function.
struct Values<'a> {
    tree: &'a Tree,
    function: &'a Function,
    /// Elements that may still be written out.
    left: Cell<usize>,
}

/// Where an element is.
#[derive(Clone, Copy)]
struct Level {
    depth: usize,
    /// How many times the grammar has it.
    copies: usize,
}

impl Level {
    fn below(self) -> Level {
        Level { depth: self.depth + 1, ..self }
    }
}

/// A value, and the element that it is in.
#[derive(Clone, Copy)]
struct Inside<'a> {
    name: &'a str,
    place: Place<'a>,
    level: Level,
}

impl Values<'_> {
    /// Whether so many elements more may be written out.
    fn takes(&self, count: usize) -> bool {
        let left = self.left.get().checked_sub(count);
        left.inspect(|left| self.left.set(*left)).is_some()
    }

    /// The members of an object, in the order of its schema.
    fn members(&self, object: Place<'_>, level: Level) -> Vec<Grammar> {
        let properties = object.schema().get("properties").and_then(Value::as_object);
        let required = object.schema().get("required").and_then(Value::as_array);
        let member = |name: &String| {
            let is_required = required.is_some_and(|names| names.iter().any(|known| known == name));
            let inside = Inside { name, place: object.member(name), level: level.below() };
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
        let Inside { name, place, level } = inside;
        let close = self.tree.close(name);
        if let Some(texts) = texts(place.schema()) {
            return sequence([Some(Grammar::choice(texts)), mark(&close)]);
        }
        if place.kind() != Kind::Other {
            return Grammar::until(close);
        }
        let members = place.schema().get("properties").and_then(Value::as_object);
        let count = members.map_or(0, Map::len);
        let elements = match level.depth < DEPTH_MAX {
            true if place.is("object")
                && count > 0
                && self.takes(level.copies.saturating_mul(count)) =>
            {
                Some(sequence(self.members(place, level).into_iter().map(Some)))
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
    fn items(&self, Inside { place, level, .. }: Inside<'_>) -> Option<Grammar> {
        place.schema().get("items")?;
        let bound = |name: &str| place.schema().get(name).and_then(Value::as_u64);
        let (least, most) = (bound("minItems").unwrap_or(0), bound("maxItems"));
        if most == Some(0) || least.max(most.unwrap_or(0)) > ITEMS_MAX {
            return None;
        }
        let times = least.max(most.unwrap_or(1)).max(1) as usize;
        let level = Level { copies: level.copies.saturating_mul(times), ..level.below() };
        if !self.takes(level.copies) {
            return None;
        }
        let inside = Inside { name: self.tree.item, place: place.item(), level };
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const TREE: Tree =
        Tree { begin: "<call ", name_end: ">", tag: "<", item: "item", end: "</call>" };

    /// How often a text stands in the grammar of a call with this schema.
    fn count(schema: Value, text: &str) -> usize {
        let function = Function { name: "f".to_owned(), parameters: Some(schema) };
        format!("{:?}", grammar(&TREE, function)).matches(text).count()
    }

    #[test]
    fn a_schema_that_stands_for_many_elements_is_json_beyond_a_limit() {
        let names = ["a1", "a2", "a3", "a4", "a5", "a6", "a7", "a8", "a9"];
        let own = json!({ "$ref": "#" });
        let members: Map<String, Value> =
            names.iter().map(|name| ((*name).to_owned(), own.clone())).collect();
        let wide = json!({ "type": "object", "properties": members });
        let found = count(wide, "a1>");
        assert!((9..3 * ELEMENTS_MAX).contains(&found), "{found}");
        let list = |items: Value| json!({ "type": "array", "minItems": 60, "items": items });
        let long = (0..6).fold(json!({ "type": "integer" }), |items, _| list(items));
        let long = json!({ "type": "object", "properties": { "b": long } });
        let found = count(long, "item>");
        assert!((60..3 * ELEMENTS_MAX).contains(&found), "{found}");
    }
}
