//! Answers by their parts.

use super::Part;
use crate::stream::EndReason;
use crate::tools::ToolCall;

/// An answer by its parts, and why it ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Answer {
    /// What the model has thought before it answered.
    pub thoughts: String,
    /// The text for the reader.
    pub text: String,
    /// The calls of functions. If the answer was cut by its length, the arguments of the last one may not be complete.
    pub calls: Vec<ToolCall>,
    /// Why it ended; `None` of an answer that is not that of a stream which has ended.
    pub reason: Option<EndReason>,
}

impl Answer {
    /// The answer with these parts.
    pub fn of(parts: impl IntoIterator<Item = Part>) -> Answer {
        let mut answer = Answer::default();
        parts.into_iter().for_each(|part| answer.add(part));
        answer
    }

    /// Whether [`max_tokens`](crate::Request::max_tokens) or the context has cut it.
    pub fn is_cut(&self) -> bool {
        self.reason == Some(EndReason::Length)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_cut_only_by_its_length() {
        let ended = |reason| Answer { reason, ..Answer::default() };
        assert!(ended(Some(EndReason::Length)).is_cut());
        for reason in [None, Some(EndReason::EndToken), Some(EndReason::StopText("#".to_owned()))] {
            assert!(!ended(reason).is_cut());
        }
    }
}
