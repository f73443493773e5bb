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
            Ok(Value::Object(map)) => Ok(Fields { map, ..Fields::default() }),
            Ok(_) => Err(ApiError::invalid("the body is not a JSON object")),
            Err(error) => Err(ApiError::invalid(format!("the body is not valid JSON: {error}"))),
        }
    }

    /// The value of `name`; `None` if it is absent or null.
    ///
    /// # Errors
    /// When it has another type.
    pub(crate) fn take<T: DeserializeOwned>(&mut self, name: &str) -> Result<Option<T>, ApiError> {
        match self.map.shift_remove(name) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => serde_json::from_value(value).map(Some).map_err(|error| {
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
        serde_json::from_value(value).map(Some).map_err(|error| {
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
