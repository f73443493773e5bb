//! A part of an answer.

/// A part of an answer, in the order of the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// What the model thinks before it answers.
    Thought(String),
    /// Text for the reader.
    Text(String),
    /// The beginning of a call.
    Call { id: String, name: String },
    /// More of the call's arguments, as text in JSON.
    Arguments(String),
    /// The end of the call.
    CallEnd,
}
