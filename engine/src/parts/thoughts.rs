//! Thoughts of a model before its answer, between tags such as `<think>` and `</think>`.

use super::part::Part;
use super::tags::{Until, until};
use crate::chat::{AnswerStart, ThoughtTags};

/// Separates thoughts from the answer that follows them.
#[derive(Debug)]
pub(super) struct ThoughtReader {
    tags: ThoughtTags,
    state: State,
    /// Text that is not decided yet.
    held: String,
    /// Whether the thoughts, or the answer after them, have only white space so far.
    is_blank: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The answer may begin with thoughts.
    Before,
    Inside,
    /// After thoughts, or in an answer without them.
    After,
}

impl ThoughtReader {
    /// A reader of an answer that begins at `start`.
    pub(super) fn new(tags: ThoughtTags, start: AnswerStart) -> ThoughtReader {
        let state = match start {
            AnswerStart::Fresh => State::Before,
            AnswerStart::Thinking => State::Inside,
            AnswerStart::Thought | AnswerStart::Within => State::After,
        };
        let is_blank = start != AnswerStart::Within;
        ThoughtReader { tags, state, held: String::new(), is_blank }
    }

    /// Adds the thoughts that `text` completes to `parts`, and returns the text of the answer.
    pub(super) fn push(&mut self, text: &str, parts: &mut Vec<Part>) -> String {
        self.held.push_str(text);
        if self.state == State::Before {
            let begin = self.held.trim_start();
            if let Some(rest) = begin.strip_prefix(self.tags.open) {
                self.held = rest.to_owned();
                self.state = State::Inside;
            } else if let Some(rest) = begin.strip_prefix(self.tags.close) {
                // Some models say so that they do not think.
                self.held = rest.to_owned();
                self.state = State::After;
            } else if [self.tags.open, self.tags.close].iter().any(|tag| tag.starts_with(begin)) {
                return String::new();
            } else {
                self.state = State::After;
                self.is_blank = false;
            }
        }
        if self.state == State::Inside {
            self.inside(parts);
        }
        if self.state == State::Inside {
            return String::new();
        }
        let text = std::mem::take(&mut self.held);
        if !self.is_blank {
            return text;
        }
        let text = text.trim_start().to_owned();
        self.is_blank = text.is_empty();
        text
    }

    /// The end of the answer: as [`push`](ThoughtReader::push) for text that was not decided.
    pub(super) fn finish(mut self, parts: &mut Vec<Part>) -> String {
        let held = std::mem::take(&mut self.held);
        if self.state != State::Inside {
            return held;
        }
        if !held.trim().is_empty() {
            parts.push(Part::Thought(held));
        }
        String::new()
    }

    fn inside(&mut self, parts: &mut Vec<Part>) {
        let Until { mut text, is_found } = until(&mut self.held, self.tags.close);
        if self.is_blank {
            text = text.trim_start().to_owned();
        }
        // White space at the end belongs to the tag, if that follows.
        let end = text.trim_end().len();
        let space = text.split_off(end);
        if !is_found {
            self.held.insert_str(0, &space);
        }
        if !text.is_empty() {
            self.is_blank = false;
            parts.push(Part::Thought(text));
        }
        if is_found {
            self.state = State::After;
            self.is_blank = true;
        }
    }
}
