//! Metadata of a weight file, with typed getters that distinguish a missing key from a wrong type.

mod error;
mod strings;

use std::fmt;

use super::value::{Array, Value, ValueKind};
pub use error::MetadataError;
use error::{integer, required, wrong};
use strings::Utf8Strings;

/// Key-value pairs of a weight file.
#[derive(Clone)]
pub struct Metadata {
    /// In file order; keys are unique.
    entries: Vec<(String, Value)>,
    /// Indices of `entries`, by key.
    order: Vec<usize>,
}

impl Metadata {
    pub(crate) fn new(entries: Vec<(String, Value)>) -> Metadata {
        let mut order: Vec<usize> = (0..entries.len()).collect();
        order.sort_unstable_by(|a, b| entries[*a].0.cmp(&entries[*b].0));
        Metadata { entries, order }
    }

    /// Value of a key.
    pub fn get(&self, key: &str) -> Option<&Value> {
        let found = self.order.binary_search_by(|i| self.entries[*i].0.as_str().cmp(key));
        found.ok().map(|at| &self.entries[self.order[at]].1)
    }

    /// All pairs, in file order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &Value)> {
        self.entries.iter().map(|(key, value)| (key.as_str(), value))
    }

    /// Number of keys.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is no key.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// A string.
    ///
    /// # Errors
    /// [`MetadataError`]: missing, not a string, not UTF-8.
    pub fn str(&self, key: &str) -> Result<&str, MetadataError> {
        required(key, self.opt_str(key)?)
    }

    /// A string, if the key is there.
    ///
    /// # Errors
    /// [`MetadataError`]: not a string, not UTF-8.
    pub fn opt_str(&self, key: &str) -> Result<Option<&str>, MetadataError> {
        match self.get(key) {
            None => Ok(None),
            Some(Value::String(text)) => text
                .to_str()
                .map(Some)
                .map_err(|_| MetadataError::NotUtf8 { key: key.to_owned(), index: None }),
            Some(other) => Err(wrong(key, "a string", other)),
        }
    }

    /// An integer of any width whose value fits.
    ///
    /// # Errors
    /// [`MetadataError`]: missing, not an integer, does not fit.
    pub fn u32(&self, key: &str) -> Result<u32, MetadataError> {
        required(key, self.opt_u32(key)?)
    }

    /// An integer of any width whose value fits, if the key is there.
    ///
    /// # Errors
    /// [`MetadataError`]: not an integer, does not fit.
    pub fn opt_u32(&self, key: &str) -> Result<Option<u32>, MetadataError> {
        self.opt_integer(key, "u32")
    }

    /// An integer of any width whose value fits.
    ///
    /// # Errors
    /// [`MetadataError`]: missing, not an integer, does not fit.
    pub fn u64(&self, key: &str) -> Result<u64, MetadataError> {
        required(key, self.opt_u64(key)?)
    }

    /// An integer of any width whose value fits, if the key is there.
    ///
    /// # Errors
    /// [`MetadataError`]: not an integer, does not fit.
    pub fn opt_u64(&self, key: &str) -> Result<Option<u64>, MetadataError> {
        self.opt_integer(key, "u64")
    }

    /// A floating-point number; binary64 is rounded to binary32.
    ///
    /// # Errors
    /// [`MetadataError`]: missing, not floating-point.
    pub fn f32(&self, key: &str) -> Result<f32, MetadataError> {
        required(key, self.opt_f32(key)?)
    }

    /// A floating-point number, if the key is there; binary64 is rounded.
    ///
    /// # Errors
    /// [`MetadataError`]: not floating-point.
    pub fn opt_f32(&self, key: &str) -> Result<Option<f32>, MetadataError> {
        let Some(value) = self.get(key) else { return Ok(None) };
        value.float().map(Some).ok_or_else(|| wrong(key, "f32 or f64", value))
    }

    /// A boolean.
    ///
    /// # Errors
    /// [`MetadataError`]: missing, not a bool.
    pub fn bool(&self, key: &str) -> Result<bool, MetadataError> {
        required(key, self.opt_bool(key)?)
    }

    /// A boolean, if the key is there.
    ///
    /// # Errors
    /// [`MetadataError`]: not a bool.
    pub fn opt_bool(&self, key: &str) -> Result<Option<bool>, MetadataError> {
        match self.get(key) {
            None => Ok(None),
            Some(Value::Bool(value)) => Ok(Some(*value)),
            Some(other) => Err(wrong(key, "bool", other)),
        }
    }

    /// The strings of an array, without copies. Each is checked once here.
    ///
    /// # Errors
    /// [`MetadataError`]: missing, not an array of strings, one is not UTF-8.
    pub fn strings(
        &self,
        key: &str,
    ) -> Result<impl ExactSizeIterator<Item = &str> + Clone + use<'_>, MetadataError> {
        required(key, self.opt_strings(key)?)
    }

    /// The strings of an array, without copies, if the key is there.
    ///
    /// # Errors
    /// [`MetadataError`]: not an array of strings, one is not UTF-8.
    pub fn opt_strings(
        &self,
        key: &str,
    ) -> Result<Option<impl ExactSizeIterator<Item = &str> + Clone + use<'_>>, MetadataError> {
        let Some((array, value)) = self.array(key, "an array of strings")? else {
            return Ok(None);
        };
        if array.kind() != ValueKind::String {
            return Err(wrong(key, "an array of strings", value));
        }
        Utf8Strings::check(array.strings())
            .map(Some)
            .map_err(|index| MetadataError::NotUtf8 { key: key.to_owned(), index: Some(index) })
    }

    /// An array of floating-point numbers; binary64 is rounded.
    ///
    /// # Errors
    /// [`MetadataError`]: missing, not an array of floating-point numbers.
    pub fn f32s(&self, key: &str) -> Result<Vec<f32>, MetadataError> {
        required(key, self.opt_f32s(key)?)
    }

    /// An array of floating-point numbers, if the key is there; binary64 is rounded.
    ///
    /// # Errors
    /// [`MetadataError`]: not an array of floating-point numbers.
    pub fn opt_f32s(&self, key: &str) -> Result<Option<Vec<f32>>, MetadataError> {
        let expected = "an array of f32 or f64";
        self.opt_vec(key, expected, ValueKind::is_float, |element| element.float().map(Ok))
    }

    /// An array of integers of any width whose values fit.
    ///
    /// # Errors
    /// [`MetadataError`]: missing, not an array of integers, one does not fit.
    pub fn i32s(&self, key: &str) -> Result<Vec<i32>, MetadataError> {
        required(key, self.opt_i32s(key)?)
    }

    /// An array of integers of any width whose values fit, if the key is there.
    ///
    /// # Errors
    /// [`MetadataError`]: not an array of integers, one does not fit.
    pub fn opt_i32s(&self, key: &str) -> Result<Option<Vec<i32>>, MetadataError> {
        let expected = "an array of integers";
        self.opt_vec(key, expected, ValueKind::is_integer, |element| {
            element.integer().map(|v| integer(key, "i32", v))
        })
    }

    /// An array of integers of any width whose values fit.
    ///
    /// # Errors
    /// [`MetadataError`]: missing, not an array of integers, one does not fit.
    pub fn u32s(&self, key: &str) -> Result<Vec<u32>, MetadataError> {
        required(key, self.opt_u32s(key)?)
    }

    /// An array of integers of any width whose values fit, if the key is there.
    ///
    /// # Errors
    /// [`MetadataError`]: not an array of integers, one does not fit.
    pub fn opt_u32s(&self, key: &str) -> Result<Option<Vec<u32>>, MetadataError> {
        let expected = "an array of integers";
        self.opt_vec(key, expected, ValueKind::is_integer, |element| {
            element.integer().map(|v| integer(key, "u32", v))
        })
    }

    /// An array of booleans.
    ///
    /// # Errors
    /// [`MetadataError`]: missing, not an array of bools.
    pub fn bools(&self, key: &str) -> Result<Vec<bool>, MetadataError> {
        required(key, self.opt_bools(key)?)
    }

    /// An array of booleans, if the key is there.
    ///
    /// # Errors
    /// [`MetadataError`]: not an array of bools.
    pub fn opt_bools(&self, key: &str) -> Result<Option<Vec<bool>>, MetadataError> {
        let expected = "an array of bools";
        self.opt_vec(key, expected, ValueKind::is_bool, |element| match element {
            Value::Bool(value) => Some(Ok(*value)),
            _ => None,
        })
    }

    fn opt_integer<T: TryFrom<i128>>(
        &self,
        key: &str,
        expected: &'static str,
    ) -> Result<Option<T>, MetadataError> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let found = value.integer().ok_or_else(|| wrong(key, "an integer", value))?;
        integer(key, expected, found).map(Some)
    }

    fn array(
        &self,
        key: &str,
        expected: &'static str,
    ) -> Result<Option<(&Array, &Value)>, MetadataError> {
        match self.get(key) {
            None => Ok(None),
            Some(value @ Value::Array(array)) => Ok(Some((array, value))),
            Some(other) => Err(wrong(key, expected, other)),
        }
    }

    /// Elements of an array whose element type `accepts`, converted; `convert` returns `None` for
    /// another type.
    fn opt_vec<T>(
        &self,
        key: &str,
        expected: &'static str,
        accepts: impl Fn(ValueKind) -> bool,
        convert: impl Fn(&Value) -> Option<Result<T, MetadataError>>,
    ) -> Result<Option<Vec<T>>, MetadataError> {
        let Some((array, value)) = self.array(key, expected)? else { return Ok(None) };
        if !accepts(array.kind()) {
            return Err(wrong(key, expected, value));
        }
        array
            .values()
            .map(|element| convert(&element).unwrap_or_else(|| Err(wrong(key, expected, value))))
            .collect::<Result<_, _>>()
            .map(Some)
    }
}

impl fmt::Debug for Metadata {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}
