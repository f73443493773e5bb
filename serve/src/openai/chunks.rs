//! Answers, whole or in chunks.

use serde::Serialize;

use super::{Head, ProgressJson, StreamOptions, TimingsJson, UsageJson};
use crate::answer::{Answers, Usage};
use crate::error::{ApiError, Dialect};
use crate::streaming::event;
use lapwing_engine::PromptProgress;

#[derive(Serialize)]
struct Chunk<'a, C> {
    #[serde(flatten)]
    head: &'a Head,
    choices: &'a [C],
    /// Null in the chunks before the one with the numbers.
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<Option<UsageJson>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timings: Option<TimingsJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt_progress: Option<ProgressJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt_token_ids: Option<Vec<u32>>,
}

/// A whole answer.
#[derive(Serialize)]
pub(super) struct Whole<'a, C> {
    #[serde(flatten)]
    head: &'a Head,
    choices: Vec<C>,
    usage: UsageJson,
    timings: TimingsJson,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt_token_ids: Option<Vec<u32>>,
}

impl<C> Whole<'_, C> {
    /// With the ids of the prompt that all choices have, if they are returned.
    pub(super) fn with_prompt(self, prompt_token_ids: Option<Vec<u32>>) -> Self {
        Self { prompt_token_ids, ..self }
    }
}

/// Writes an answer, whole or in chunks.
pub(super) struct Chunks {
    head: Head,
    options: StreamOptions,
}

impl Chunks {
    /// An answer that begins with `head`.
    pub(super) fn new(head: Head, options: StreamOptions) -> Chunks {
        Chunks { head, options }
    }

    /// A chunk with these choices.
    fn chunk<'a, C>(&'a self, choices: &'a [C]) -> Chunk<'a, C> {
        let usage = self.options.include_usage.then_some(None);
        Chunk {
            head: &self.head,
            choices,
            usage,
            timings: None,
            prompt_progress: None,
            prompt_token_ids: None,
        }
    }

    /// Writes a chunk with a part of a choice.
    pub(super) fn choice<C: Serialize>(&self, choice: C, answers: &Answers, out: &mut String) {
        self.begin(choice, None, answers, out);
    }

    /// Writes a chunk with the first part of a choice, and the ids of its prompt if they are returned.
    pub(super) fn begin<C: Serialize>(
        &self,
        choice: C,
        prompt_token_ids: Option<Vec<u32>>,
        answers: &Answers,
        out: &mut String,
    ) {
        let chunk = self.chunk(std::slice::from_ref(&choice));
        let usage = match self.options.continuous_usage {
            true => Some(Some(answers.usage().into())),
            false => chunk.usage,
        };
        event(&Chunk { usage, prompt_token_ids, ..chunk }, out);
    }

    /// Writes a chunk with an empty part of a choice, of whose prompt more is computed.
    pub(super) fn prompt<C: Serialize>(
        &self,
        choice: C,
        progress: PromptProgress,
        out: &mut String,
    ) {
        let prompt_progress = Some(progress.into());
        event(&Chunk { prompt_progress, ..self.chunk(&[choice]) }, out);
    }

    /// The answer with these complete choices.
    pub(super) fn whole<C>(
        &self,
        choices: Vec<C>,
        usage: Usage,
        answers: &Answers,
    ) -> Whole<'_, C> {
        let (usage, timings) = (usage.into(), TimingsJson::of(answers));
        Whole { head: &self.head, choices, usage, timings, prompt_token_ids: None }
    }

    /// Ends the stream: writes the usage chunk if it was requested, then `[DONE]`.
    pub(super) fn finish(&self, answers: &Answers, out: &mut String) {
        if self.options.include_usage {
            let usage = Some(Some(answers.usage().into()));
            let timings = Some(TimingsJson::of(answers));
            event(&Chunk { usage, timings, ..self.chunk::<()>(&[]) }, out);
        }
        out.push_str("data: [DONE]\n\n");
    }
}

/// Writes a failure, which ends the answer.
pub(super) fn failed(error: &ApiError, out: &mut String) {
    event(&error.json(Dialect::OpenAi), out);
}
