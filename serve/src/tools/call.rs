//! Calls of functions, as OpenAI's interface has them.

use serde::Serialize;

use lapwing_engine::tools::ToolCall;

/// A call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct CallJson {
    id: String,
    #[serde(rename = "type")]
    kind: &'static str,
    function: CalledFunction,
}

/// The function of a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct CalledFunction {
    name: String,
    /// Arguments as text in JSON.
    arguments: String,
}

impl From<ToolCall> for CallJson {
    fn from(ToolCall { id, name, arguments }: ToolCall) -> CallJson {
        CallJson { id, kind: "function", function: CalledFunction { name, arguments } }
    }
}
