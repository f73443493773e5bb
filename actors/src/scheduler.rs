//! The scheduler: admits requests, cuts them into chunks, and gives every chunk its route. A pure
//! state machine: its inputs are messages and the time, its outputs are effects.
//!
//! One rule covers prefill, decode and recomputation: a sequence is a growing list of tokens, of
//! which the first `sent` have been dispatched as rows. The remaining rows are ready. Decode is the
//! case in which one row remains.

use std::fmt::Display;
use std::sync::Arc;

use lapwing_traces::Nanos;
use lapwing_traces::event::Milestone;

use crate::error::RunError;
use crate::message::{
    Emission, Outcome, Progress, RollBack, SchedulerMessage, Shutdown, StreamEvent, Submit,
};
use crate::policy::End;
use crate::sequence::SequenceId;
use crate::traced::{TraceContext, Traced};

mod accounts;
mod admission;
mod ahead;
mod background;
mod bandwidth;
mod batches;
mod checks;
mod chunk_times;
mod chunks;
mod claims;
mod companions;
mod copy_page;
mod effect;
mod end;
mod graphs;
mod lanes;
mod latencies;
mod meanwhile;
mod models;
mod moments;
mod pace;
mod parts;
mod payoff;
mod prefixes;
mod queue;
mod reached;
mod reserve;
mod rows;
mod running;
mod selection;
mod spans;
mod stall;
mod state;
mod step_times;
mod waiting;

pub use batches::Batches;
use chunks::{NextChunk, Why};
pub use claims::Reserve;
pub use copy_page::CopyPage;
pub use effect::{Note, Noted, RouteChosen, SchedulerEffect, Stall};
use end::{fail, finish, refuse};
pub use lanes::contention::StageErrors;
pub use models::SchedulerModel;
pub use moments::{BUSY_MAX, BUSY_PAUSE, REST};
pub use parts::{KvPages, SchedulerConfig, SchedulerParts};
use reached::Reached;
pub use rows::Limit;
use running::Sequence;
pub use state::Scheduler;

impl Scheduler {
    /// Handles a message at time `now`.
    pub fn on(&mut self, message: Traced<SchedulerMessage>, now: Nanos) -> Vec<SchedulerEffect> {
        let mut effects = Vec::new();
        self.queue.now = now;
        let Traced { message, context } = message;
        match message {
            SchedulerMessage::Submit(submit) => {
                self.on_submit(Traced::new(*submit, context), now, &mut effects);
            }
            SchedulerMessage::Progress(progress) => self.on_progress(progress, now, &mut effects),
            SchedulerMessage::Prepared(prepared) => {
                self.moments.on_prepared(now);
                self.graphs.on_prepared(*prepared);
            }
            SchedulerMessage::Rested => self.moments.on_rested(),
            SchedulerMessage::Wake => {}
            SchedulerMessage::RollBack(roll_back) => self.on_roll_back(roll_back, &mut effects),
            SchedulerMessage::ActorDied(error) => {
                self.dead.get_or_insert(error.clone());
                self.fail_all(&error, &mut effects);
            }
            SchedulerMessage::Shutdown(how) => {
                self.ending = Some(how);
                if how == Shutdown::Now {
                    self.fail_all(&RunError::ShuttingDown, &mut effects);
                }
            }
        }
        self.drop_cancelled(&mut effects);
        self.dispatch(now, &mut effects);
        if self.is_over() {
            effects.push(SchedulerEffect::Stop);
        }
        effects
    }

    fn is_over(&self) -> bool {
        let idle = self.sequences() == 0 && self.permits.in_use() == 0;
        self.dead.is_some()
            || self.ending == Some(Shutdown::Now)
            || (self.ending == Some(Shutdown::Drain) && idle)
    }

    fn on_submit(
        &mut self,
        submit: Traced<Submit>,
        now: Nanos,
        effects: &mut Vec<SchedulerEffect>,
    ) {
        let id = SequenceId(self.next_sequence);
        self.next_sequence += 1;
        let (sink, context) = (Arc::clone(&submit.sink), submit.context.same_request());
        let trace = submit.trace.clone();
        trace.record("id", id.0);
        let reach = |milestone, value, why: Option<&dyn Display>| {
            Reached { milestone, value, why }.tell(&trace, id);
            let what = Noted::Milestone(milestone, value);
            SchedulerEffect::Note(Traced::new(Note { sequence: id, what }, context))
        };
        effects.push(reach(Milestone::Submitted, submit.ids.len() as u64, None));
        if let Some(gap) = submit.urgency.token_gap.or(self.pace.token_gap) {
            effects.push(reach(Milestone::TokenGap, (Nanos(0) + gap).0, None));
        }
        if let Err(error) = self.check(&submit) {
            drop(submit);
            effects.push(reach(Milestone::Failed, 0, Some(&error)));
            let emission = Emission { sequence: id, sink, event: StreamEvent::Failed(error) };
            effects.push(SchedulerEffect::Emit(Traced::new(emission, context)));
            return;
        }
        let model = &self.models[submit.model.0];
        let mut sequence = Sequence::new(id, submit, model.context, model.is_encoder, now);
        if let Some(error) = self.queue.refusal(&sequence) {
            return refuse(sequence, &error, effects);
        }
        self.queue.on_arrival(&mut sequence);
        match sequence.finished_before_start() {
            Some(reason) => finish(&mut self.queue, sequence, reason, now, effects),
            None => self.waiting.push(sequence),
        }
    }

    fn on_progress(&mut self, progress: Progress, now: Nanos, effects: &mut Vec<SchedulerEffect>) {
        for model in &mut self.models {
            model.on_chunk_ended(progress.chunk, now);
        }
        self.on_chunk_timed(&progress, now);
        let is_whole = progress.sequences.iter().all(|rows| rows.outcome.is_computed());
        self.lanes.on_ended(progress.chunk, is_whole, now);
        self.graphs.on_progress(progress.chunk);
        let mut next = 0;
        for rows in progress.sequences {
            // Rows are in the order of the running sequences, as a rule.
            let is_it = |sequence: &Sequence| sequence.id == rows.sequence;
            let (before, after) = self.running.split_at(next.min(self.running.len()));
            let found = after.iter().position(is_it).map(|at| before.len() + at);
            let Some(at) = found.or_else(|| before.iter().position(is_it)) else { continue };
            next = at;
            if matches!(rows.outcome, Outcome::Sampled(..)) {
                self.on_token(at, now);
            }
            let sequence = &mut self.running[at];
            sequence.on_chunk_ended(rows.epoch);
            let generated = sequence.times.generated_tokens;
            let is_stale = rows.epoch != sequence.progress.epoch();
            if let (Some(hidden), false) = (rows.hidden, is_stale) {
                sequence.keep_hidden(hidden);
            }
            let ended = match rows.outcome {
                // Its target has rejected the tokens before it.
                Outcome::Sampled(_, generate) if is_stale && sequence.is_companion() => {
                    sequence.on_stale(progress.chunk, generate, effects);
                    None
                }
                Outcome::Computed => {
                    sequence.on_pass_ended(progress.chunk, false, effects);
                    sequence.report_prompt(now, effects);
                    None
                }
                Outcome::Sampled(tokens, generate) => {
                    sequence.on_token_time(now);
                    sequence.on_tokens(progress.chunk, &tokens, generate, effects);
                    self.propose(at);
                    tokens.last().finish.map(Ok)
                }
                Outcome::Scored(count) => sequence.on_scored(count, now).map(Ok),
                Outcome::Embedded(count) => sequence.on_embedded(count, now).map(Ok),
                Outcome::Lost(error) => Some(Err(error)),
                Outcome::Stale(generate) => {
                    sequence.on_stale(progress.chunk, generate, effects);
                    None
                }
                // Its stream is closed; `drop_cancelled` removes it.
                Outcome::Abandoned => None,
            };
            self.queue.on_tokens(&self.running[at], generated);
            self.keep_rows(at, matches!(ended, Some(Ok(_))));
            match ended {
                None => {}
                Some(Err(error)) if self.running[at].is_companion() => {
                    self.end_companion(at, &error.to_string(), effects);
                }
                Some(Ok(reason)) => {
                    self.close_account(at, effects);
                    self.learn_answer(at, reason);
                    finish(&mut self.queue, self.running.remove(at), reason, now, effects);
                }
                Some(Err(error)) => {
                    fail(&mut self.queue, self.running.remove(at), &error, effects);
                }
            }
        }
    }

    /// Rolls a sequence back. A sequence that has ended, or whose rows are not dispatched yet, stays
    /// unchanged.
    fn on_roll_back(&mut self, roll_back: RollBack, effects: &mut Vec<SchedulerEffect>) {
        let RollBack { sequence, row } = roll_back;
        let found = self.running.iter_mut().find(|s| s.id == sequence && s.sent > row);
        if let Some(sequence) = found {
            let row = sequence.go_back(row);
            let row = sequence.unshare(row, &self.models[sequence.model.0].kv.layout);
            sequence.roll_back(row, effects);
        }
    }

    /// Removes every sequence whose caller has dropped the stream. Their pages return with the last
    /// chunk that holds them.
    fn drop_cancelled(&mut self, effects: &mut Vec<SchedulerEffect>) {
        let mut drops = |sequence: &Sequence| {
            // A companion ends with its target.
            let cancelled = sequence.sink.is_closed() && !sequence.is_companion();
            if cancelled {
                self.queue.on_end(sequence, End::Cancelled);
                sequence.lose(effects);
                sequence.note_end(Milestone::Cancelled, None, effects);
            }
            cancelled
        };
        self.waiting.drop_cancelled(&mut drops);
        self.running.retain(|running| !drops(running));
    }

    fn fail_all(&mut self, error: &RunError, effects: &mut Vec<SchedulerEffect>) {
        self.drop_companions(|_| true, effects);
        for sequence in self.waiting.take_all().chain(self.running.drain(..)) {
            fail(&mut self.queue, sequence, error, effects);
        }
    }

    /// Admits requests and sends chunks while there are permits.
    fn dispatch(&mut self, now: Nanos, effects: &mut Vec<SchedulerEffect>) {
        self.running.iter_mut().for_each(|sequence| sequence.lacks_graphs = false);
        self.give_turn(now);
        loop {
            self.admit(now, effects);
            self.draft_by_models(effects);
            self.order_running();
            if self.reserve_decode_rows(effects) {
                continue;
            }
            let Some(permit) = self.permits.try_take() else { break };
            match self.next_chunk(permit, effects) {
                NextChunk::Chunk(chunk, why) => {
                    let context = TraceContext::of_all(chunk.sequences.iter().map(|s| s.context));
                    let Why { stall, limit, route } = *why;
                    effects.extend(limit.map(|limit| limit.note(&chunk, context)));
                    effects.extend(route.map(|route| route.note(&chunk, context)));
                    for delivery in chunk.deliver(context) {
                        effects.push(SchedulerEffect::Send(delivery.device(), delivery, stall));
                    }
                }
                NextChunk::Failed => {}
                NextChunk::Nothing => break,
            }
        }
        self.record_stalls(now);
        self.prepare_ahead(now, effects);
    }
}
