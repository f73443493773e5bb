//! What the readers of all forms of calls have in common.

use std::fmt;

use super::part::Part;

/// Reads the calls of a part of an answer, or of a whole answer, while their text arrives.
pub(super) trait CallForm: fmt::Debug + Send + Sync {
    /// Adds to `parts` what `text` completes.
    fn push(&mut self, text: &str, parts: &mut Vec<Part>) -> Progress;

    /// The end of the part; `is_closed` says that the text after it has been there. The reader is then as at its start.
    fn finish(&mut self, is_closed: bool, parts: &mut Vec<Part>) -> Rest;

    /// Whether the text so far is one call or several, and nothing else.
    fn is_after_call(&self) -> bool;

    /// Whether an answer that begins with this text is calls as a whole; `None` while that is open.
    fn begins(&self, answer: &str) -> Option<bool>;
}

/// What has become of a text.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// It may go on.
    Open,
    /// A call has ended, and this text follows.
    AfterCall(String),
    /// It is no call.
    Broken,
}

/// What is left at the end.
#[derive(Debug, Default)]
pub(super) struct Rest {
    /// Text that no part has.
    pub(super) text: String,
    /// Whether calls were read.
    pub(super) has_calls: bool,
}

/// Whether a text may be the name of a function, or its beginning.
pub(super) fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(is_of_name)
}

/// Whether names of functions may have this character.
pub(super) fn is_of_name(char: char) -> bool {
    char.is_alphanumeric() || "_-.:/".contains(char)
}
