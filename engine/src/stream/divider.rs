//! Answers that are divided into parts as their tokens arrive.

use super::{EndReason, TokenStream};
use crate::chat::AnswerStart;
use crate::error::Error;
use crate::parts::{Answer, AnswerForm, AnswerReader, Part};

/// Divides the answer of a stream, if its request asks for it.
#[derive(Debug, Default)]
pub(super) struct Divider {
    reader: Option<AnswerReader>,
    /// All parts so far.
    answer: Answer,
}

impl Divider {
    fn new(form: &AnswerForm, start: AnswerStart) -> Divider {
        Divider { reader: Some(AnswerReader::new(form, start)), answer: Answer::default() }
    }

    /// The parts that the text of a token completes; `is_last` says that no text follows.
    pub(super) fn push(&mut self, text: &str, is_last: bool) -> Vec<Part> {
        let Some(reader) = &mut self.reader else { return Vec::new() };
        let mut parts = reader.push(text.to_owned());
        if is_last {
            parts.extend(reader.finish());
        }
        parts.iter().for_each(|part| self.answer.add(part.clone()));
        parts
    }

    /// The whole answer at its end, which has this reason, if it was divided.
    pub(super) fn answer(&mut self, reason: EndReason) -> Option<Answer> {
        let mut reader = self.reader.take()?;
        // Nothing is left after a last token.
        reader.finish().into_iter().for_each(|part| self.answer.add(part));
        Some(Answer { reason: Some(reason), ..std::mem::take(&mut self.answer) })
    }
}

impl TokenStream {
    /// With parts of this form, if there is one.
    pub(crate) fn divided(mut self, form: Option<AnswerForm>) -> TokenStream {
        if let Some(form) = form {
            self.divider = Divider::new(&form, self.start);
        }
        self
    }

    /// The whole answer by its parts, with the reason of its end. If the request does not have it divided, it is one text.
    /// The rest of the [`Summary`](crate::Summary), such as times and seed, is lost: a program that needs it calls
    /// [`next`](TokenStream::next) up to the end, and then [`summary`](TokenStream::summary).
    ///
    /// # Errors
    /// When the generation fails; the tokens generated before are lost.
    pub async fn into_answer(mut self) -> Result<Answer, Error> {
        let mut text = String::new();
        while let Some(token) = self.next().await {
            text.push_str(&token?.text);
        }
        let Some(summary) = self.summary else {
            return Ok(Answer { text, ..Answer::default() });
        };
        let whole = |reason| Answer { text, reason: Some(reason), ..Answer::default() };
        Ok(summary.answer.unwrap_or_else(|| whole(summary.reason)))
    }
}
