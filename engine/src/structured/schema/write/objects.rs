//! Which properties the objects of a schema have, and how many.

use serde_json::{Map, Value, json};

use super::{At, Output, Writer};
use crate::structured::regex;
use crate::structured::schema::closing::Known;
use crate::structured::schema::document::Place;
use crate::structured::schema::keywords::OF_OTHERS;
use crate::structured::schema::values::{self, Kept};

impl<'a> Writer<'a, '_, '_> {
    /// Closes an object that no other schema speaks of.
    pub(super) fn close(&mut self, place: Place<'a>, output: &mut Output, at: &At<'_>) {
        let Value::Object(members) = place.value else { return };
        let says = |keyword: &str| members.contains_key(keyword);
        if let Some(names) = members.get("propertyNames") {
            return self.name_by(names, members, output, at);
        }
        if let (Some(others), false) =
            (members.get("unevaluatedProperties"), says("additionalProperties"))
        {
            match others {
                Value::Bool(_) => {
                    output.members.insert("additionalProperties".to_owned(), others.clone());
                }
                _ => self.schemas.ignore(at.below("unevaluatedProperties").pointer()),
            }
        }
        let is_closed = OF_OTHERS.iter().all(|keyword| !says(keyword))
            || members.get("unevaluatedProperties") == Some(&Value::Bool(false));
        let Some(Value::Object(properties)) = output.members.get_mut("properties") else { return };
        if is_closed {
            for name in self.shapes.mentioned(place) {
                properties.entry(name).or_insert(Value::Bool(true));
            }
            output.members.entry("additionalProperties").or_insert(Value::Bool(false));
        }
    }

    /// Closes an object that several schemas speak of.
    pub(super) fn close_composed(
        &mut self,
        members: &Map<String, Value>,
        known: &Known,
        output: &mut Output,
        at: &At<'_>,
    ) {
        if known.is_closed() && members.get("unevaluatedProperties") != Some(&Value::Bool(true)) {
            let names = known.names.keys().map(|name| (name.clone(), Value::Bool(true)));
            let properties: Map<String, Value> = names.collect();
            let mut closed = Map::new();
            if let Some(kind) = members.get("type") {
                closed.insert("type".to_owned(), kind.clone());
            }
            closed.insert("properties".to_owned(), properties.into());
            closed.insert("additionalProperties".to_owned(), false.into());
            output.all.push(closed.into());
        } else {
            self.leave(members, output, at);
        }
    }

    /// Names what an object that stays open does not follow.
    pub(super) fn leave(&mut self, members: &Map<String, Value>, _: &mut Output, at: &At<'_>) {
        for keyword in ["unevaluatedProperties", "propertyNames"] {
            let is_needless = match members.get(keyword) {
                None | Some(Value::Bool(true)) => true,
                Some(schema) => *schema == json!({}) || *schema == json!({ "type": "string" }),
            };
            if !is_needless {
                self.schemas.ignore(at.below(keyword).pointer());
            }
        }
    }

    /// Follows `propertyNames` where it lists names or has a pattern, and nothing else speaks of properties.
    pub(super) fn name_by(
        &mut self,
        names: &Value,
        members: &Map<String, Value>,
        output: &mut Output,
        at: &At<'_>,
    ) {
        let is_alone = ["properties", "patternProperties", "unevaluatedProperties"]
            .iter()
            .all(|keyword| !members.contains_key(*keyword));
        let listed = match (names.get("enum"), names.get("const")) {
            (Some(Value::Array(listed)), _) => listed.iter().filter_map(Value::as_str).collect(),
            (_, Some(Value::String(name))) => vec![name.as_str()],
            _ => Vec::new(),
        };
        let pattern = match names.get("pattern").and_then(Value::as_str) {
            _ if !listed.is_empty() => {
                let texts: Vec<String> = listed.into_iter().map(str::to_owned).collect();
                Some(format!("^{}$", regex::one_of(&texts)))
            }
            Some(pattern) if values::pattern(&pattern.into()) == Ok(Kept::As(pattern.into())) => {
                Some(pattern.to_owned())
            }
            _ => None,
        };
        match pattern {
            Some(pattern) if is_alone => {
                let schema = output.members.insert("additionalProperties".to_owned(), false.into());
                let schema = schema.unwrap_or(Value::Bool(true));
                output.members.insert("patternProperties".to_owned(), json!({ pattern: schema }));
            }
            _ => self.leave(members, output, at),
        }
    }

    /// Leaves out numbers of properties that the library does not count: it counts where all properties of the schema
    /// are required, and one of several that may be absent.
    pub(super) fn count_properties(
        &mut self,
        members: &Map<String, Value>,
        output: &mut Output,
        at: &At<'_>,
    ) {
        let number = |keyword: &str| output.members.get(keyword).and_then(Value::as_u64);
        let (least, most) = (number("minProperties"), number("maxProperties"));
        if least.is_none() && most.is_none() {
            return;
        }
        let required = members.get("required").and_then(Value::as_array);
        let required: Vec<&str> =
            required.into_iter().flatten().filter_map(Value::as_str).collect();
        let properties = members.get("properties").and_then(Value::as_object);
        let mut names = properties.into_iter().flatten().map(|(name, _)| name.as_str());
        let are_required = names.all(|name| required.contains(&name));
        let is_closed = output.members.get("additionalProperties") == Some(&Value::Bool(false))
            && !output.members.contains_key("patternProperties");
        let beyond =
            |count: Option<u64>| count.map(|count| count.saturating_sub(required.len() as u64));
        let is_one = is_closed && beyond(least).unwrap_or(0) <= 1 && beyond(most).unwrap_or(1) == 1;
        let is_known = output.all.is_empty() && !output.refers();
        let is_needless = most.is_none() && beyond(least) == Some(0);
        if is_known && (are_required || is_one || is_needless) {
            return;
        }
        for keyword in ["minProperties", "maxProperties"] {
            if output.members.shift_remove(keyword).is_some() {
                self.schemas.ignore(at.below(keyword).pointer());
            }
        }
    }
}
