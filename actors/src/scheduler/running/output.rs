//! Which rows of a sequence need their output, and what a sequence does with it.

use std::ops::Range;
use std::sync::Arc;

use lapwing_traces::Nanos;

use super::{Sequence, Wanted};
use crate::draft::{DRAFT_MAX, DraftCost, Drafts, Source, StepTokens, Wait, chain};
use crate::handover::Sampling;
use crate::message::{Emission, FinishReason, Generate, OutputAction, PromptProgress, StreamEvent};
use crate::scheduler::effect::SchedulerEffect;
use crate::traced::Traced;

/// The next decode step of a sequence.
pub(in super::super) struct NextStep<F> {
    /// Rows of other sequences in it.
    pub(in super::super) others: usize,
    /// Time of drafting a token, in ns.
    pub(in super::super) per_token: f64,
    /// Time in ns within which it is to end, with the drafting. A draft is as short as that needs.
    pub(in super::super) slack: f64,
    /// Predicts its time in ns by its rows, if that is known.
    pub(in super::super) verify: F,
}

impl Sequence {
    /// The finish reason of a request that needs no computation.
    pub(in super::super) fn finished_before_start(&self) -> Option<FinishReason> {
        match &self.work {
            Wanted::Tokens(Some(generate)) if generate.tokens_max == 0 => {
                Some(FinishReason::Length)
            }
            Wanted::Scores { next, .. } if *next >= self.ids.len() => Some(FinishReason::Scored),
            Wanted::Hidden { next, end, .. } if next >= end => Some(FinishReason::Embedded),
            _ => None,
        }
    }

    /// Prompt rows for a chunk with room for `left`. Rows that see later ones are all in one chunk; a text that is
    /// longer than the room has a chunk of its own, in which it comes first.
    pub(in super::super) fn prompt_rows(&self, left: usize, others: bool) -> usize {
        match self.work {
            Wanted::Hidden { whole: true, .. } if others && self.due() > left => 0,
            Wanted::Hidden { whole: true, .. } => self.due(),
            _ => self.due().min(left),
        }
    }

    /// How many of the next `rows` rows, and of the branches beside them, need their output.
    pub(in super::super) fn selected_in(&self, rows: usize) -> usize {
        let end = self.sent + rows;
        match &self.work {
            Wanted::Tokens(state) if end == self.goal() && (state.is_some() || self.is_ahead()) => {
                self.sampled_rows(rows) + self.branch_rows()
            }
            Wanted::Tokens(_) => 0,
            Wanted::Scores { next, .. } => end - (*next - 1).clamp(self.sent, end),
            Wanted::Hidden { next, end: last, .. } => {
                let last = (*last).min(end);
                last - (*next).clamp(self.sent, last)
            }
        }
    }

    /// Dispatches the next `rows` rows. Returns the offsets of rows that need their output, and its use.
    pub(in super::super) fn dispatch_rows(&mut self, rows: usize) -> (Range<usize>, OutputAction) {
        let (start, end) = (self.sent, self.sent + rows);
        let (goal, sampled) = (self.goal(), self.sampled_rows(rows));
        self.sent = end;
        self.in_flight += 1;
        let overlaps = self.drafts().is_some_and(|drafts| drafts.source.overlaps());
        match &mut self.work {
            Wanted::Tokens(state) if end == goal => {
                let next = overlaps.then(Arc::default);
                let before = self.speculation.as_mut().and_then(|speculation| {
                    speculation.next_pass.clone_from(&next);
                    speculation.before.take()
                });
                let sampling = match (state.take(), before) {
                    (Some(generate), _) => Sampling::new(generate, next),
                    (None, Some(before)) => Sampling::after(before, next),
                    (None, None) => return (0..0, OutputAction::None),
                };
                (rows - sampled..rows, OutputAction::Sample(sampling))
            }
            Wanted::Tokens(_) => (0..0, OutputAction::None),
            Wanted::Scores { next, top } => {
                // The row at position p predicts the token at p + 1.
                let first = (*next - 1).clamp(start, end);
                if first == end {
                    return (0..0, OutputAction::None);
                }
                let (ids, top) = (self.ids[first + 1..end + 1].to_vec(), *top);
                (first - start..rows, OutputAction::Score { ids, top })
            }
            Wanted::Hidden { next, end: last, .. } => {
                let last = (*last).min(end);
                match (*next).clamp(start, last) {
                    first if first == last => (0..0, OutputAction::None),
                    first => (first - start..last - start, OutputAction::Embed),
                }
            }
        }
    }

    /// Handles the tokens that a chunk chose. Rows of rejected draft tokens are rolled back, and passes that were sent
    /// after them become stale.
    pub(in super::super) fn on_tokens(
        &mut self,
        (chunk, tokens): (u64, &StepTokens),
        generate: Option<Box<Generate>>,
        now: Nanos,
        effects: &mut Vec<SchedulerEffect>,
    ) {
        if self.times.generated_tokens == 0 {
            self.times.first_token = now;
        }
        let is_step = self.has_generated();
        (self.latest_token, self.is_fed) = (now, true);
        self.times.generated_tokens += tokens.iter().count();
        let drafted = self.on_pass_decided(chunk, tokens, effects);
        let verified = self.follow_draft(drafted, tokens);
        if let (Some(drafts), true) = (self.drafts_mut(), is_step) {
            drafts.on_step(&verified);
        }
        let before = self.ids.len();
        self.keep_alternatives(tokens);
        self.ids.extend(tokens.iter().map(|token| token.id));
        let new = &self.ids[before..];
        let is_right = tokens.last().finish.is_none() && self.draft().starts_with(new);
        // A next pass that did not get the sampling state is stale.
        let is_followed = generate.is_none() || self.sent < self.ids.len();
        if let Some(generate) = generate {
            self.work = Wanted::Tokens(Some(generate));
        }
        if is_right && is_followed {
            // The next pass goes on with the rest of the draft.
            let right = self.ids.len() - before;
            if let Some(it) = &mut self.speculation {
                it.draft.drain(..right);
            }
        } else {
            self.clear_draft();
            let accepted = self.ids.len() - 1;
            if self.sent > accepted {
                let (row, nudges) = self.progress.roll_back(accepted);
                effects.extend(nudges.into_iter().map(SchedulerEffect::Nudge));
                self.waste_from(row, effects);
                (self.sent, self.stale) = (row, self.in_flight);
            }
        }
        self.on_pass_ended(chunk, false, effects);
    }

    /// Drafts the tokens of the next step, or chooses how many a draft model is to draft.
    pub(in super::super) fn propose<F>(&mut self, vocab: usize, step: NextStep<F>)
    where
        F: Fn(usize) -> Option<f64>,
    {
        let NextStep { others, per_token, slack, verify } = step;
        let Wanted::Tokens(Some(generate)) = &self.work else { return };
        let most = generate.tokens_max.saturating_sub(1);
        let drafts = self.speculation.as_mut().and_then(|it| it.drafts.as_deref_mut());
        let Some(drafts) = drafts.filter(|_| most > 0) else { return };
        let Drafts { source, length, always, stats, .. } = drafts;
        let most = most.min(always.unwrap_or(DRAFT_MAX));
        let (overlaps, acceptance) = (source.overlaps(), length.hopeful_acceptance());
        let others_accepted = length.acceptance_of_others();
        let cost = DraftCost { per_token, overlaps, acceptance };
        let time = |rows: usize| Some(cost.step(rows - 1 - others, verify(rows)?));
        // A stale pass of the draft model may be in flight when the draft begins.
        let stale = usize::from(overlaps);
        let fits = |drafted: &usize| {
            let drafting = per_token * (drafted + stale) as f64;
            verify(drafted + 1 + others).is_none_or(|time| time + drafting <= slack)
        };
        let fitting = |most: usize| (1..=most).rev().find(fits).unwrap_or(0);
        let mut choose = |chances: &[f64]| {
            let verified = fitting(match always {
                Some(_) => chances.len(),
                None => length.choose(chances, others, time),
            });
            stats.declined += usize::from(verified == 0 && !chances.is_empty());
            verified
        };
        match source {
            Source::Drafter(drafter) => {
                let tree = drafter.draft_tree(&self.ids, most).within(most, vocab);
                let mut nodes = tree.by_chance((acceptance, others_accepted));
                nodes.truncate(always.unwrap_or(DRAFT_MAX));
                let chances: Vec<f64> = nodes.iter().map(|(_, chance)| *chance).collect();
                let verified = choose(&chances);
                self.set_draft(tree.first(&nodes, verified));
            }
            Source::Model(model) if model.stopped.is_some() => model.wait = Wait::Nothing,
            Source::Model(model) => {
                // A draft that was missed is still wanted, so that a trial does not end before it began.
                let wanted = match model.wait {
                    Wait::Missed(count) => fitting(count.min(most)),
                    _ => {
                        let chances = chain(acceptance).take(most.min(DRAFT_MAX));
                        choose(&chances.collect::<Vec<_>>())
                    }
                };
                let is_limited = slack.is_finite();
                model.fitting = if is_limited { fitting(DRAFT_MAX + 1) } else { usize::MAX };
                model.length = wanted;
                model.wait = if wanted > 0 { Wait::Tokens(wanted) } else { Wait::Nothing };
                model.fresh = true;
            }
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
        let Wanted::Scores { next, .. } = &mut self.work else { return None };
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
        let Wanted::Hidden { next, end, .. } = &mut self.work else { return None };
        *next += count;
        let done = next >= end;
        if done {
            self.times.first_token = now;
        }
        done.then_some(FinishReason::Embedded)
    }
}
