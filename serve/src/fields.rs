//! The fields of a request's body. Handlers take them one by one; the fields that remain have no effect.

use axum::body::Bytes;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::error::ApiError;

/// The fields that are not taken yet.
#[derive(Debug, Default)]
pub(crate) struct Fields {
    map: Map<String, Value>,
    /// Further names without effect.
    ignored: Vec<String>,
    /// What precedes a field's name in errors, such as `options.`.
    within: &'static str,
}

impl Fields {
    /// Those of a body in JSON.
    ///
    /// # Errors
    /// When it is not a JSON object.
    pub(crate) fn of_body(body: &Bytes) -> Result<Fields, ApiError> {
        match serde_json::from_slice(body) {
            Ok(Value::Object(map)) => Ok(Fields::of_object(map)),
            Ok(_) => Err(ApiError::invalid("the body is not a JSON object")),
            Err(error) => Err(ApiError::invalid(format!("the body is not valid JSON: {error}"))),
        }
    }

    /// Those of an object.
    pub(crate) fn of_object(map: Map<String, Value>) -> Fields {
        Fields { map, ..Fields::default() }
    }

    /// The value of `name`; `None` if it is absent or null.
    ///
    /// # Errors
    /// When it has another type.
    pub(crate) fn take<T: DeserializeOwned>(&mut self, name: &str) -> Result<Option<T>, ApiError> {
        match self.map.shift_remove(name) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => read(value).map(Some).map_err(|error| {
                let name = format!("{}{name}", self.within);
                ApiError::field(&name, format!("{name}: {error}"))
            }),
        }
    }

    /// As [`take`](Fields::take); the first of several names that is there.
    pub(crate) fn take_any<T: DeserializeOwned>(
        &mut self,
        names: &[&str],
    ) -> Result<Option<T>, ApiError> {
        let mut found = None;
        for name in names {
            let value = self.take(name)?;
            found = found.or(value);
        }
        Ok(found)
    }

    /// The value of `name`.
    ///
    /// # Errors
    /// When it is absent or has another type.
    pub(crate) fn need<T: DeserializeOwned>(&mut self, name: &str) -> Result<T, ApiError> {
        let missing = || ApiError::field(name, format!("{}{name} is missing", self.within));
        let missing = missing();
        self.take(name)?.ok_or(missing)
    }

    /// The value of `name`, which stays.
    pub(crate) fn peek(&self, name: &str) -> Option<&Value> {
        self.map.get(name)
    }

    /// The fields of the object `name`, `within` being its name with a dot; none if it is absent.
    pub(crate) fn object(&mut self, name: &str, within: &'static str) -> Result<Fields, ApiError> {
        let map = self.take(name)?.unwrap_or_default();
        Ok(Fields { map, within, ..Fields::default() })
    }

    /// Takes the member `name` of the object `object`; `None` if one of them is absent or null.
    ///
    /// # Errors
    /// When it has another type.
    pub(crate) fn take_of<T: DeserializeOwned>(
        &mut self,
        object: &str,
        name: &str,
    ) -> Result<Option<T>, ApiError> {
        let Some(Value::Object(members)) = self.map.get_mut(object) else { return Ok(None) };
        let value = members.shift_remove(name).filter(|value| !value.is_null());
        if members.is_empty() {
            self.map.shift_remove(object);
        }
        let Some(value) = value else { return Ok(None) };
        read(value).map(Some).map_err(|error| {
            let name = format!("{}{object}.{name}", self.within);
            ApiError::field(&name, format!("{name}: {error}"))
        })
    }

    /// Adds a field, in place of one with its name.
    pub(crate) fn put(&mut self, name: &str, value: Value) {
        self.map.insert(name.to_owned(), value);
    }

    /// Drops a field if it asks for nothing but what happens anyway.
    pub(crate) fn drop_if(&mut self, name: &str, values: &[Value]) {
        if self.map.get(name).is_some_and(|value| values.contains(value)) {
            self.map.shift_remove(name);
        }
    }

    /// Counts parts of other fields among those without effect.
    pub(crate) fn name_ignored(&mut self, names: Vec<String>) {
        self.ignored.extend(names);
    }

    /// Names of the fields that were not taken and are not null.
    pub(crate) fn rest(self) -> Vec<String> {
        let given = self.map.into_iter().filter(|(_, value)| !value.is_null());
        let names = given.map(|(name, _)| format!("{}{name}", self.within));
        names.chain(self.ignored).collect()
    }
}

/// Reads a value. A whole number may be written with a fraction of 0 or an exponent, such as `2.0` and `1e3`.
fn read<T: DeserializeOwned>(value: Value) -> Result<T, serde_json::Error> {
    T::deserialize(&value).or_else(|error| match with_whole_numbers(value) {
        Some(value) => T::deserialize(&value).map_err(|_| error),
        None => Err(error),
    })
}

/// A value with its whole numbers as integers; `None` if it has no number that changes.
fn with_whole_numbers(value: Value) -> Option<Value> {
    /// Doubles are exact up to here.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let mut has_changed = false;
    let mut value = value;
    let mut open = vec![&mut value];
    while let Some(value) = open.pop() {
        match value {
            Value::Array(values) => open.extend(values),
            Value::Object(members) => open.extend(members.values_mut()),
            Value::Number(number) => {
                let whole =
                    number.as_f64().filter(|number| number.fract() == 0.0 && number.abs() <= EXACT);
                if let (true, Some(whole)) = (number.is_f64(), whole) {
                    *number = (whole as i64).into();
                    has_changed = true;
                }
            }
            _ => {}
        }
    }
    has_changed.then_some(value)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use axum::body::Bytes;

    use super::Fields;

    #[test]
    fn whole_numbers_may_have_a_fraction_of_zero_or_an_exponent() {
        let body = r#"{"a": 2.0, "b": 1e3, "c": 2.5, "d": [1.0, 2], "e": {"x": 3.0}, "f": 7.0, "g": 1e300, "h": -1.0}"#;
        let mut fields = Fields::of_body(&Bytes::from_static(body.as_bytes())).expect("fields");
        assert_eq!(fields.take::<usize>("a").expect("a number"), Some(2));
        assert_eq!(fields.take::<u64>("b").expect("a number"), Some(1000));
        assert!(fields.take::<usize>("c").is_err());
        assert_eq!(fields.take::<Vec<u32>>("d").expect("numbers"), Some(vec![1, 2]));
        let map = fields.take::<BTreeMap<String, i64>>("e").expect("numbers");
        assert_eq!(map.and_then(|map| map.get("x").copied()), Some(3));
        assert_eq!(fields.take::<f32>("f").expect("a number"), Some(7.0));
        assert!(fields.take::<i64>("g").is_err());
        assert!(fields.take::<usize>("h").is_err());
    }
}
