//! Answers that are divided into parts as their tokens arrive.

use super::TokenStream;
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

    /// The whole answer at its end, if it was divided.
    pub(super) fn answer(&mut self) -> Option<Answer> {
        let mut reader = self.reader.take()?;
        // Nothing is left after a last token.
        reader.finish().into_iter().for_each(|part| self.answer.add(part));
        Some(std::mem::take(&mut self.answer))
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

    /// The whole answer by its parts. If the request does not have it divided, it is one text.
    ///
    /// # Errors
    /// When the generation fails; the tokens generated before are lost.
    pub async fn into_answer(mut self) -> Result<Answer, Error> {
        let mut text = String::new();
        while let Some(token) = self.next().await {
            text.push_str(&token?.text);
        }
        let divided = self.summary.and_then(|summary| summary.answer);
        Ok(divided.unwrap_or_else(|| Answer { text, ..Answer::default() }))
    }
}
