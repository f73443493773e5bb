//! Answers by their parts.

use super::Part;
use crate::tools::ToolCall;

/// An answer by its parts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Answer {
    /// What the model has thought before it answered.
    pub thoughts: String,
    /// The text for the reader.
    pub text: String,
    /// The calls of functions. If the answer was cut by its length, the arguments of the last one may not be complete.
    pub calls: Vec<ToolCall>,
}

impl Answer {
    /// The answer with these parts.
    pub fn of(parts: impl IntoIterator<Item = Part>) -> Answer {
        let mut answer = Answer::default();
        parts.into_iter().for_each(|part| answer.add(part));
        answer
    }

    /// Adds a part.
    pub fn add(&mut self, part: Part) {
        match part {
            Part::Thought(text) => self.thoughts.push_str(&text),
            Part::Text(text) => self.text.push_str(&text),
            Part::CallEnd(call) => self.calls.push(call),
            // The end of the call has all of it.
            Part::Call { .. } | Part::Arguments(_) => {}
        }
    }
}
