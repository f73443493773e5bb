//! The results of a run, as numbers with names.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use crate::simulate::Results;

/// The numbers of a run, by the names that they have in the JSON of its command; those within an object have its name before a
/// dot, as in `latencies.ttft_ms.p50`. A number that the run does not have is NaN.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Numbers(pub BTreeMap<String, f64>);

impl Results for Numbers {
    fn result(&self, name: &str) -> Option<f64> {
        self.0.get(name).copied().filter(|number| number.is_finite())
    }
}

impl Numbers {
    /// All numbers of a report, without those of lists.
    pub(super) fn of(report: &impl Serialize) -> Numbers {
        let mut numbers = BTreeMap::new();
        collect("", &serde_json::to_value(report).unwrap_or_default(), &mut numbers);
        Numbers(numbers)
    }

    /// The same without those within the object of this name.
    pub(super) fn without(mut self, object: &str) -> Numbers {
        let is_within =
            |name: &str| name.strip_prefix(object).is_some_and(|it| it.starts_with('.'));
        self.0.retain(|name, _| !is_within(name));
        self
    }

    /// The same with another one.
    pub(super) fn with(mut self, name: &str, number: Option<f64>) -> Numbers {
        self.0.insert(name.to_owned(), number.unwrap_or(f64::NAN));
        self
    }
}

fn collect(before: &str, value: &Value, numbers: &mut BTreeMap<String, f64>) {
    match value {
        Value::Number(number) => {
            numbers.extend(number.as_f64().map(|number| (before.to_owned(), number)));
        }
        Value::Object(map) => {
            let dot = if before.is_empty() { "" } else { "." };
            map.iter()
                .for_each(|(key, value)| collect(&format!("{before}{dot}{key}"), value, numbers));
        }
        Value::Null => _ = numbers.insert(before.to_owned(), f64::NAN),
        Value::Bool(_) | Value::String(_) | Value::Array(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_within_objects_have_their_names() {
        let report =
            serde_json::json!({"a": 1, "b": {"c": 2.5, "d": [3]}, "e": "4", "f": null, "g": true});
        let numbers = Numbers::of(&report).with("h", None).with("i", Some(5.0));
        let names: Vec<&str> = numbers.0.keys().map(String::as_str).collect();
        assert_eq!(names, ["a", "b.c", "f", "h", "i"]);
        let found = ["a", "b.c", "f", "h", "i", "j"].map(|name| numbers.result(name));
        assert_eq!(found, [Some(1.0), Some(2.5), None, None, Some(5.0), None]);
    }
}
