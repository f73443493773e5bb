//! A part of an answer.

use crate::tools::ToolCall;

/// A part of an answer, in the order of the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// What the model thinks before it answers.
    Thought(String),
    /// Text for the reader.
    Text(String),
    /// The beginning of a call.
    Call {
        /// Its id.
        id: String,
        /// Name of the function.
        name: String,
    },
    /// More of the call's arguments, as text in JSON.
    Arguments(String),
    /// The end of the call, which is this one. If the answer was cut inside of it, its arguments are not complete.
    CallEnd(ToolCall),
}
