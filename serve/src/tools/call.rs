//! Calls of functions.

use serde::Serialize;
use serde_json::value::RawValue;

/// A call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct ToolCall {
    pub(crate) id: String,
    #[serde(rename = "type")]
    kind: &'static str,
    pub(crate) function: CalledFunction,
}

impl ToolCall {
    pub(crate) fn new(id: String, function: CalledFunction) -> ToolCall {
        ToolCall { id, kind: "function", function }
    }
}

/// The function of a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct CalledFunction {
    pub(crate) name: String,
    /// Arguments as text in JSON.
    pub(crate) arguments: String,
}

/// Arguments as a JSON value on one line, whose numbers keep all their digits; `None` if the text is no JSON.
pub(crate) fn as_object(arguments: &str) -> Option<Box<RawValue>> {
    serde_json::from_str::<&RawValue>(arguments).ok()?;
    let (mut text, mut is_text, mut is_escaped) = (String::new(), false, false);
    for char in arguments.chars() {
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
    use super::as_object;

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
            let found = as_object(arguments);
            assert_eq!(found.as_ref().map(|found| found.get()), want, "{arguments}");
        }
    }
}
