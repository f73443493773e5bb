//! Which objects have no other properties than those that their schema names.
//!
//! By the standard, `properties` alone allows any other property, and a small model then writes properties without end.
//! So an object is closed where its schema has `properties` and says nothing of others. Several schemas may hold for
//! one value (`allOf`, a reference beside other keywords): each knows only some of the properties, so that they stay open and the
//! names of all of them close the whole.

use std::collections::{HashMap, HashSet};

use indexmap::IndexMap;
use serde_json::Value;

use super::document::{Document, Place, address};
use super::keywords::{CONDITIONAL, OF_OTHERS, OF_PARTS};

/// What is done with the objects of a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Closing {
    /// They are closed.
    Close,
    /// Other schemas hold for the same value: what is around closes it. The parts of the value are closed.
    Around,
    /// As `Around`, but other schemas hold for the parts as well, so that they stay open.
    AroundShared,
    /// They stay open, with all parts.
    Leave,
}

impl Closing {
    /// For the parts of a value.
    pub(super) fn of_parts(self) -> Closing {
        match self {
            Closing::Close | Closing::Around => Closing::Close,
            Closing::AroundShared | Closing::Leave => Closing::Leave,
        }
    }
}

/// How the schemas that hold for one value go together.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Whole {
    /// At most one of them says something about parts, and it is elsewhere.
    Elsewhere,
    /// Only the schema itself does.
    Own,
    /// Several do.
    Composed,
}

/// The properties that the schemas of one value name.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// Names, with the number of schemas that hold for the property at once.
    pub(super) names: IndexMap<String, usize>,
    /// Schemas for the items of an array at once.
    items: usize,
    has_properties: bool,
    /// Whether one says something of other properties.
    speaks_of_others: bool,
    /// Schemas that were read.
    pub(super) schemas: usize,
}

impl Known {
    /// Whether a property or an item has several schemas.
    pub(super) fn shares_parts(&self) -> bool {
        self.items > 1 || self.names.values().any(|schemas| *schemas > 1)
    }

    /// Whether the properties are all that there are.
    pub(super) fn is_closed(&self) -> bool {
        self.has_properties && !self.speaks_of_others
    }

    fn join(&mut self, other: Known, add: fn(usize, usize) -> usize) {
        for (name, schemas) in other.names {
            let known = self.names.entry(name).or_insert(0);
            *known = add(*known, schemas);
        }
        self.items = add(self.items, other.items);
        self.has_properties |= other.has_properties;
        self.speaks_of_others |= other.speaks_of_others;
    }
}

/// Finds out how the schemas of values go together.
#[derive(Debug)]
pub(super) struct Shapes<'a, 'd> {
    document: &'d Document<'a>,
    /// Whether schemas say something about parts; none while that is being found out.
    speaks: HashMap<usize, Option<bool>>,
}

impl<'a, 'd> Shapes<'a, 'd> {
    pub(super) fn new(document: &'d Document<'a>) -> Shapes<'a, 'd> {
        Shapes { document, speaks: HashMap::new() }
    }

    /// How the schemas of the value of `place` go together.
    pub(super) fn whole(&mut self, place: Place<'a>) -> Whole {
        let is_own = speaks_itself(place.value);
        let mut groups = 0;
        for group in groups_of(self.document, place) {
            let speaking = group.schemas.iter().filter(|schema| self.speaks(**schema)).count();
            groups += if group.is_all { speaking } else { speaking.min(1) };
        }
        match (is_own, groups) {
            (false, 0 | 1) => Whole::Elsewhere,
            (true, 0) => Whole::Own,
            _ => Whole::Composed,
        }
    }

    /// Whether a schema, or one that holds for the same value, says something about parts.
    fn speaks(&mut self, place: Place<'a>) -> bool {
        let key = address(place.value);
        if let Some(known) = self.speaks.get(&key) {
            return known.unwrap_or(false);
        }
        self.speaks.insert(key, None);
        let groups = groups_of(self.document, place);
        let found = speaks_itself(place.value)
            || groups.iter().flat_map(|group| &group.schemas).any(|schema| self.speaks(*schema));
        self.speaks.insert(key, Some(found));
        found
    }

    /// The properties that the schemas of the value of `place` name. Of the outermost schema,
    /// `unevaluatedProperties` does not count.
    pub(super) fn known(&self, place: Place<'a>) -> Known {
        let mut seen = HashSet::new();
        let known = self.gather(place, true, &mut seen);
        Known { schemas: seen.len(), ..known }
    }

    fn gather(&self, place: Place<'a>, is_outermost: bool, seen: &mut HashSet<usize>) -> Known {
        let mut known = Known::default();
        let Value::Object(members) = place.value else { return known };
        // A schema that is reached twice is compatible with itself.
        if !seen.insert(address(place.value)) {
            return known;
        }
        if let Some(Value::Object(properties)) = members.get("properties") {
            known.has_properties = true;
            known.names.extend(properties.keys().map(|name| (name.clone(), 1)));
        }
        known.items =
            usize::from(members.contains_key("items") || members.contains_key("prefixItems"));
        known.speaks_of_others = OF_OTHERS.iter().any(|keyword| {
            let counts = !(is_outermost && *keyword == "unevaluatedProperties");
            counts && members.contains_key(*keyword)
        });
        for group in groups_of(self.document, place) {
            let mut of_group = Known::default();
            for schema in group.schemas {
                let found = self.gather(schema, false, seen);
                of_group.join(found, if group.is_all { |a, b| a + b } else { usize::max });
            }
            known.join(of_group, |a, b| a + b);
        }
        for name in self.mentioned(place) {
            known.names.entry(name).or_insert(0);
        }
        known
    }

    /// Names that a schema mentions beside those of its `properties`: those that it requires, and those of conditions.
    pub(super) fn mentioned(&self, place: Place<'a>) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        let mut open = vec![place.value];
        let mut is_first = true;
        while let Some(schema) = open.pop() {
            let required = schema.get("required").and_then(Value::as_array);
            names.extend(required.into_iter().flatten().filter_map(Value::as_str).map(Into::into));
            if let (false, Some(Value::Object(found))) = (is_first, schema.get("properties")) {
                names.extend(found.keys().cloned());
            }
            is_first = false;
            for keyword in CONDITIONAL {
                match schema.get(keyword) {
                    Some(Value::Object(schemas)) if keyword.starts_with("depend") => {
                        open.extend(schemas.values());
                    }
                    Some(condition) => open.push(condition),
                    None => {}
                }
            }
        }
        names
    }
}

/// Schemas that hold for one value: all of them, or one.
struct Group<'a> {
    schemas: Vec<Place<'a>>,
    is_all: bool,
}

/// The schemas that hold for the same value as `place`, which the keywords of `place` name.
fn groups_of<'a>(document: &Document<'a>, place: Place<'a>) -> Vec<Group<'a>> {
    let Value::Object(members) = place.value else { return Vec::new() };
    let mut groups = Vec::new();
    for (keyword, value) in members {
        match (keyword.as_str(), value) {
            ("$ref" | "$dynamicRef" | "$recursiveRef", Value::String(reference)) => {
                let target = document.resolve(place.resource, reference);
                groups.push(Group { schemas: target.into_iter().collect(), is_all: true });
            }
            ("allOf" | "anyOf" | "oneOf", Value::Array(schemas)) => {
                let schemas = schemas.iter().map(|schema| document.place(schema, place.resource));
                groups.push(Group { schemas: schemas.collect(), is_all: keyword == "allOf" });
            }
            _ => {}
        }
    }
    groups
}

fn speaks_itself(schema: &Value) -> bool {
    OF_PARTS.iter().any(|keyword| schema.get(keyword).is_some())
}
