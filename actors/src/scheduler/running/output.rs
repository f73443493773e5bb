//! What a sequence does with the output of its rows.

use std::sync::Arc;

use lapwing_traces::Nanos;

use super::{Sequence, SequenceTask};
use crate::draft::StepTokens;
use crate::message::{Emission, FinishReason, Generate, PromptProgress, StreamEvent};
use crate::scheduler::effect::SchedulerEffect;
use crate::traced::Traced;

impl Sequence {
    /// The finish reason of a request that needs no computation.
    pub(in super::super) fn finished_before_start(&self) -> Option<FinishReason> {
        match &self.work {
            SequenceTask::Tokens(Some(generate)) if generate.tokens_max == 0 => {
                Some(FinishReason::Length)
            }
            SequenceTask::Scores { next, .. } if *next >= self.ids.len() => {
                Some(FinishReason::Scored)
            }
            SequenceTask::Hidden { next, end, .. } if next >= end => Some(FinishReason::Embedded),
            _ => None,
        }
    }

    /// Records that it has a token now.
    pub(in super::super) fn on_token_time(&mut self, now: Nanos) {
        if self.times.generated_tokens == 0 {
            self.times.first_token = now;
        }
        (self.latest_token, self.is_fed) = (now, true);
    }

    /// Handles the tokens that a chunk chose.
    pub(in super::super) fn on_tokens(
        &mut self,
        chunk: u64,
        tokens: &StepTokens,
        generate: Option<Box<Generate>>,
        effects: &mut Vec<SchedulerEffect>,
    ) {
        self.times.generated_tokens += tokens.iter().count();
        if self.speculation.is_some() {
            return self.on_verified(chunk, tokens, generate, effects);
        }
        self.ids.extend(tokens.iter().map(|token| token.id));
        self.take_back(generate);
    }

    /// Takes the sampling state back from a chunk that carried it.
    pub(super) fn take_back(&mut self, generate: Option<Box<Generate>>) {
        if let (SequenceTask::Tokens(state), Some(generate)) = (&mut self.work, generate) {
            *state = Some(generate);
        }
    }

    /// Tells its caller how much of the prompt is computed, if the caller wants that and does not know it. An event may
    /// come after the first token, which a worker sends.
    pub(in super::super) fn report_prompt(
        &mut self,
        now: Nanos,
        effects: &mut Vec<SchedulerEffect>,
    ) {
        if !self.sink.wants_prompt_progress() || self.is_companion() || self.has_generated() {
            return;
        }
        let (tokens, cached) = (self.times.prompt_tokens, self.times.cached_tokens);
        let computed = self.progress.complete().min(tokens);
        if self.reported.is_some_and(|known| computed <= known) {
            return;
        }
        self.reported = Some(computed);
        let elapsed = now.since(self.times.admitted);
        let event = StreamEvent::Prompt(PromptProgress { tokens, cached, computed, elapsed });
        let emission = Emission { sequence: self.id, sink: Arc::clone(&self.sink), event };
        effects.push(SchedulerEffect::Emit(Traced::new(emission, self.context)));
    }

    pub(in super::super) fn on_scored(&mut self, count: usize, now: Nanos) -> Option<FinishReason> {
        let SequenceTask::Scores { next, .. } = &mut self.work else { return None };
        *next += count;
        let done = *next >= self.ids.len();
        if done {
            self.times.first_token = now;
        }
        done.then_some(FinishReason::Scored)
    }

    pub(in super::super) fn on_embedded(
        &mut self,
        count: usize,
        now: Nanos,
    ) -> Option<FinishReason> {
        let SequenceTask::Hidden { next, end, .. } = &mut self.work else { return None };
        *next += count;
        let done = next >= end;
        if done {
            self.times.first_token = now;
        }
        done.then_some(FinishReason::Embedded)
    }
}
