//! A sequence inside the scheduler.

use std::cell::Cell;
use std::fmt::Display;
use std::sync::Arc;

use lapwing_kernels::device::ModelId;
use lapwing_kernels::kv::KvLease;
use lapwing_traces::event::Milestone;
use lapwing_traces::{Nanos, RequestTimes};

use super::effect::{Note, Noted, SchedulerEffect, Stall};
use super::models::{ChunkKind, Output};
use super::queue::entry::QueueEntry;
use super::reached::Reached;
use crate::message::{Emission, Generate, Sink, StreamEvent, Submit, Task};
use crate::prefix::{Kept, Known, PrefixUse};
use crate::sequence::{AdmissionPermit, RowProgress, SequenceId};
use crate::stats::RunningRequest;
use crate::traced::{TraceContext, Traced};

mod branches;
mod companion;
mod given;
mod output;
mod pages;
mod passes;
mod propose;
mod rows;
mod speculation;
mod states;

pub(super) use passes::devices;
pub(super) use propose::{NextStep, StepTime};
use speculation::Speculation;
use states::States;

/// A growing list of tokens, and the progress of its rows.
pub(super) struct Sequence {
    pub(super) id: SequenceId,
    pub(super) model: ModelId,
    /// Prompt, then generated tokens.
    pub(super) ids: Vec<u32>,
    /// Tokens dispatched as rows.
    pub(super) sent: usize,
    /// Chunks that hold rows of this sequence.
    pub(super) in_flight: usize,
    /// The chunks among those that belong to earlier epochs. No row is dispatched while there is one.
    stale: usize,
    pub(super) lease: KvLease,
    /// `None` while it waits, and of a model without states.
    pub(super) states: Option<Box<States>>,
    pub(super) progress: Arc<RowProgress>,
    pub(super) sink: Arc<dyn Sink>,
    pub(super) times: RequestTimes,
    pub(super) trace: tracing::Span,
    /// Trace context of the request.
    pub(super) context: TraceContext,
    /// The stall of its ready rows, if they are not dispatched.
    pub(super) stall: Option<Stall>,
    /// Whether its ready rows are not dispatched because a graph of their route is missing.
    pub(super) lacks_graphs: bool,
    /// `None` if it neither drafts nor is of a draft model.
    speculation: Option<Box<Speculation>>,
    /// Time of its latest token.
    pub(super) latest_token: Nanos,
    /// Whether it has had a token since the latest chunk with prompt rows was sent.
    pub(super) is_fed: bool,
    /// How it uses the prefix cache.
    pub(super) prefix: PrefixUse,
    /// What the prefix cache has of its tokens while it waits.
    pub(super) matched: Cell<Known>,
    /// First rows whose pages are in the prefix cache; always whole pages. It must not write them.
    pub(super) shared: Kept,
    pub(super) entry: QueueEntry,
    /// Prompt tokens that its caller knows to be computed.
    reported: Option<usize>,
    work: SequenceTask,
    _admission: Option<AdmissionPermit>,
}

enum SequenceTask {
    /// The sampling state, or `None` while the chunk that will sample carries it.
    Tokens(Option<Box<Generate>>),
    /// Next position to score, and how many of the most likely tokens to report there.
    Scores { next: usize, top: usize },
    /// Next position whose hidden states are to be sent, and the end of those positions. `whole` if rows see later
    /// ones, so that all are computed in one chunk.
    Hidden { next: usize, end: usize, whole: bool },
}

impl Sequence {
    pub(super) fn new(
        id: SequenceId,
        submit: Traced<Submit>,
        context: usize,
        whole: bool,
        now: Nanos,
    ) -> Sequence {
        let Traced { message: submit, context: request } = submit;
        let prompt_tokens = submit.ids.len();
        let (mut tokens_max, mut drafts) = (0, None);
        let work = match submit.task {
            Task::Generate(mut generate) => {
                generate.tokens_max = generate.tokens_max.min(context - prompt_tokens);
                tokens_max = generate.tokens_max;
                drafts = generate.drafts.take();
                SequenceTask::Tokens(Some(generate))
            }
            Task::Score { from, top } => SequenceTask::Scores { next: from.max(1), top },
            Task::Embed { rows } => {
                SequenceTask::Hidden { next: rows.start, end: rows.end.min(prompt_tokens), whole }
            }
        };
        Sequence {
            id,
            model: submit.model,
            ids: submit.ids,
            sent: 0,
            in_flight: 0,
            stale: 0,
            lease: KvLease::default(),
            states: None,
            progress: Arc::new(RowProgress::new(0)),
            sink: submit.sink,
            times: RequestTimes { submitted: now, prompt_tokens, ..RequestTimes::default() },
            trace: submit.trace,
            context: request.same_request(),
            stall: None,
            lacks_graphs: false,
            speculation: drafts.map(Speculation::of_request),
            latest_token: now,
            is_fed: false,
            prefix: submit.prefix,
            matched: Cell::default(),
            shared: Kept::default(),
            entry: QueueEntry::new(submit.client, submit.urgency, tokens_max).since(now),
            reported: None,
            work,
            _admission: Some(submit.admission),
        }
    }

    /// The kind of chunk that its rows go into.
    pub(super) fn kind(&self) -> ChunkKind {
        let output = match self.work {
            SequenceTask::Tokens(_) | SequenceTask::Scores { .. } => Output::Logits,
            SequenceTask::Hidden { .. } => Output::Hidden,
        };
        ChunkKind { model: self.model, output }
    }

    /// Whether it is a request of which only the next token is missing, after those that it has generated.
    pub(super) fn is_streaming(&self) -> bool {
        !self.is_companion() && self.has_generated() && self.sent + 1 >= self.ids.len()
    }

    /// Itself as a request; `None` if it is the companion of one.
    pub(super) fn as_request(&self) -> Option<RunningRequest> {
        let RequestTimes { prompt_tokens, cached_tokens, recomputed_tokens, .. } = self.times;
        (!self.is_companion()).then(|| RunningRequest {
            number: self.id.0,
            prompt_tokens,
            cached_tokens,
            recomputed_tokens,
            computed_tokens: self.progress.complete().min(prompt_tokens),
            generated_tokens: self.ids.len() - prompt_tokens,
        })
    }

    /// Whether it has tokens that were generated.
    pub(super) fn has_generated(&self) -> bool {
        self.ids.len() > self.times.prompt_tokens
    }

    pub(super) fn on_admitted(&mut self, now: Nanos, effects: &mut Vec<SchedulerEffect>) {
        if self.times.admitted == Nanos::default() {
            self.times.admitted = now;
            let RequestTimes { cached_tokens, recomputed_tokens, .. } = self.times;
            let mut reach = |milestone, tokens: usize| {
                self.reach(Reached { milestone, value: tokens as u64, why: None }, effects);
            };
            reach(Milestone::Admitted, cached_tokens);
            if recomputed_tokens > 0 {
                reach(Milestone::Recomputed, recomputed_tokens);
            }
        }
    }

    /// Records that it has reached a milestone, and tells it to subscribers.
    fn reach(&self, reached: Reached<'_>, effects: &mut Vec<SchedulerEffect>) {
        reached.tell(&self.trace, self.id);
        self.note(Noted::Milestone(reached.milestone, reached.value), effects);
    }

    fn note(&self, what: Noted, effects: &mut Vec<SchedulerEffect>) {
        let note = Note { sequence: self.id, what };
        effects.push(SchedulerEffect::Note(Traced::new(note, self.context)));
    }

    /// Marks the sequence as lost and nudges the workers that wait for its rows.
    pub(super) fn lose(&self, effects: &mut Vec<SchedulerEffect>) {
        effects.extend(self.progress.lose().into_iter().map(SchedulerEffect::Nudge));
    }

    /// Records that the sequence leaves the engine at a milestone, and why.
    pub(super) fn note_end(
        &self,
        milestone: Milestone,
        why: Option<&dyn Display>,
        effects: &mut Vec<SchedulerEffect>,
    ) {
        let value = self.times.generated_tokens as u64;
        self.reach(Reached { milestone, value, why }, effects);
        self.note(Noted::Freed(self.lease.pages().len()), effects);
    }

    /// Its last event. Releases its pages and its admission permit.
    pub(super) fn into_emission(self, event: StreamEvent) -> Traced<Emission> {
        let emission = Emission { sequence: self.id, sink: Arc::clone(&self.sink), event };
        Traced::new(emission, self.context)
    }

    /// Records the end of a chunk with rows of the sequence that were dispatched in `epoch`.
    pub(super) fn on_chunk_ended(&mut self, epoch: u64) {
        self.in_flight -= 1;
        self.stale -= usize::from(epoch != self.progress.epoch());
    }

    /// Handles the end of a stale chunk. Takes the sampling state back if the chunk carried it.
    pub(super) fn on_stale(
        &mut self,
        chunk: u64,
        generate: Option<Box<Generate>>,
        effects: &mut Vec<SchedulerEffect>,
    ) {
        self.on_pass_ended(chunk, true, effects);
        self.take_back(generate);
    }

    /// Rolls back to `row`, or to the first row in flight. Later rows wait for the end of stale chunks.
    pub(super) fn roll_back(&mut self, row: usize, effects: &mut Vec<SchedulerEffect>) {
        let (row, nudges) = self.progress.roll_back(row);
        effects.extend(nudges.into_iter().map(SchedulerEffect::Nudge));
        self.entry.lose_rows(self.sent);
        self.clear_draft();
        self.waste_from(row, effects);
        (self.sent, self.stale) = (row, self.in_flight);
        self.drop_own_hidden(row);
    }

    /// Releases its pages. All rows are recomputed later, with the same result.
    pub(super) fn preempt(&mut self, effects: &mut Vec<SchedulerEffect>) {
        self.note(Noted::Freed(self.lease.pages().len()), effects);
        self.lease = KvLease::default();
        self.states = None;
        // A copy that is not made yet would keep its pages from the sequence that this one is preempted for.
        effects
            .retain(|effect| !matches!(effect, SchedulerEffect::Copy(copy) if copy.is_of(self.id)));
        self.clear_draft();
        self.forget_hidden();
        self.await_nothing();
        (self.sent, self.shared) = (0, Kept::default());
    }
}
