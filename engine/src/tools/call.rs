//! Calls of functions.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::chat::short_id;

/// A call of a function.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    /// Its id, in the form that every chat template accepts.
    pub id: String,
    /// Name of the function.
    pub name: String,
    /// The arguments as text in JSON, as the model has written it. If the answer was cut inside of them, they are not complete.
    pub arguments: String,
}

/// The arguments of a call are not what is expected. The message says it in words that the model understands, too. With `?` it
/// becomes an [`Error`](crate::Error) of the kind [`Answer`](crate::ErrorKind::Answer).
#[derive(Debug, thiserror::Error)]
#[error("the arguments of the call of '{name}' cannot be read: {source}; they are: {arguments}")]
#[non_exhaustive]
pub struct ArgumentsError {
    /// Name of the function.
    pub name: String,
    /// The arguments.
    pub arguments: String,
    /// What is wrong with them.
    pub source: serde_json::Error,
}

impl ToolCall {
    /// A call with an id that differs from all others of this process, and most likely of others.
    pub fn new(name: impl Into<String>, arguments: impl Into<String>) -> ToolCall {
        ToolCall { id: new_id(), name: name.into(), arguments: arguments.into() }
    }

    /// The arguments as a value of type `T`.
    ///
    /// # Errors
    /// When they are not complete, or have another form.
    pub fn arguments_as<T: DeserializeOwned>(&self) -> Result<T, ArgumentsError> {
        serde_json::from_str(&self.arguments).map_err(|source| ArgumentsError {
            name: self.name.clone(),
            arguments: self.arguments.clone(),
            source,
        })
    }

    /// The arguments as a JSON value on one line, whose numbers keep all their digits; `None` if the text is no JSON.
    pub fn compact_arguments(&self) -> Option<Box<RawValue>> {
        compact(&self.arguments)
    }
}

fn new_id() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    short_id(RandomState::new().hash_one(COUNT.fetch_add(1, Ordering::Relaxed)))
}

/// A JSON value without white space between its parts.
fn compact(json: &str) -> Option<Box<RawValue>> {
    serde_json::from_str::<&RawValue>(json).ok()?;
    let (mut text, mut is_text, mut is_escaped) = (String::new(), false, false);
    for char in json.chars() {
        if is_text || !matches!(char, ' ' | '\n' | '\r' | '\t') {
            text.push(char);
        }
        is_text ^= char == '"' && !is_escaped;
        is_escaped = is_text && char == '\\' && !is_escaped;
    }
    RawValue::from_string(text).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::ToolCall;

    #[test]
    fn arguments_keep_their_digits_and_lose_their_white_space() {
        let rows = [
            (
                "{ \"a\" :\n 12345678901234567890123,\t\"b\": 0.10 }",
                Some(r#"{"a":12345678901234567890123,"b":0.10}"#),
            ),
            (r#"{"a": "x \" y: {  }\\", "b": 1}"#, Some(r#"{"a":"x \" y: {  }\\","b":1}"#)),
            ("{\"a\": 1", None),
            ("1 2", None),
        ];
        for (arguments, want) in rows {
            let found = ToolCall::new("f", arguments).compact_arguments();
            assert_eq!(found.as_ref().map(|found| found.get()), want, "{arguments}");
        }
    }

    #[test]
    fn arguments_that_are_cut_are_an_error_with_their_text() {
        let call = ToolCall::new("paint", "{\"colour\": \"re");
        let error = call.arguments_as::<Value>().expect_err("no JSON");
        assert_eq!((&*error.name, &*error.arguments), ("paint", "{\"colour\": \"re"));
        assert!(error.to_string().contains("'paint'") && error.to_string().contains("\"re"));
        let (text, error) = (error.to_string(), crate::error::Error::from(error));
        assert_eq!((error.kind(), error.to_string()), (crate::error::ErrorKind::Answer, text));
        assert!(error.arguments_error().is_some_and(|error| error.name == "paint"));
        let whole = ToolCall::new("paint", r#"{"colour": "red"}"#);
        let arguments: std::collections::BTreeMap<String, String> =
            whole.arguments_as().expect("JSON");
        assert_eq!(arguments["colour"], "red");
    }

    #[test]
    fn ids_differ_and_every_template_accepts_them() {
        let ids = [(); 100].map(|()| ToolCall::new("f", "{}").id);
        let distinct: std::collections::BTreeSet<&String> = ids.iter().collect();
        assert_eq!(distinct.len(), ids.len());
        let fits =
            |id: &String| id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric());
        assert!(ids.iter().all(fits), "{ids:?}");
    }
}
