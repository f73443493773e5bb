//! Answers between two tags, which are no part of them.

use super::tags::{Until, until};

/// The texts around an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AnswerTags {
    open: &'static str,
    close: &'static str,
}

/// Those of published models.
const KNOWN: [AnswerTags; 2] = [
    // Granite 3.
    AnswerTags { open: "<response>", close: "</response>" },
    // Hunyuan.
    AnswerTags { open: "<answer>", close: "</answer>" },
];

impl AnswerTags {
    /// The tags that a template tells, if it has any.
    pub(super) fn of(template: &str) -> Option<AnswerTags> {
        KNOWN.into_iter().find(|tags| template.contains(tags.open) && template.contains(tags.close))
    }
}

/// Takes the tags off an answer as it arrives.
#[derive(Debug)]
pub(super) struct WrapReader {
    tags: AnswerTags,
    state: State,
    held: String,
    /// Whether the answer has only white space so far.
    is_blank: bool,
}

#[derive(Debug, PartialEq, Eq)]
enum State {
    Before,
    Inside,
    /// After the tag that closes, or in an answer without tags.
    Outside,
}

impl WrapReader {
    /// A reader at the start of an answer, or inside of a text that the prompt begins.
    pub(super) fn new(tags: AnswerTags, is_within: bool) -> WrapReader {
        let state = if is_within { State::Outside } else { State::Before };
        WrapReader { tags, state, held: String::new(), is_blank: true }
    }

    /// The text of the answer that `text` completes.
    pub(super) fn push(&mut self, text: &str) -> String {
        self.held.push_str(text);
        if self.state == State::Before {
            let begin = self.held.trim_start();
            if let Some(rest) = begin.strip_prefix(self.tags.open) {
                self.held = rest.to_owned();
                self.state = State::Inside;
            } else if self.tags.open.starts_with(begin) {
                return String::new();
            } else {
                self.state = State::Outside;
            }
        }
        if self.state == State::Outside {
            return std::mem::take(&mut self.held);
        }
        let Until { mut text, is_found } = until(&mut self.held, self.tags.close);
        if self.is_blank {
            text = text.trim_start().to_owned();
        }
        // White space at the end belongs to the tag, if that follows.
        let space = text.split_off(text.trim_end().len());
        match is_found {
            true => self.state = State::Outside,
            false => self.held.insert_str(0, &space),
        }
        self.is_blank &= text.is_empty();
        text
    }

    /// The text that was not decided at the end.
    pub(super) fn finish(self) -> String {
        self.held
    }
}
