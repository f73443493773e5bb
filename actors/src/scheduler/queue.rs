//! Applies the queue policy: the order of admission, the order of running sequences, and the victim of
//! a preemption.
//!
//! Preemption terminates for any ranks. A sequence is admitted with pages for all of its
//! tokens, so one that needs a page has generated a token since it was last given pages; and a
//! preempted sequence keeps its tokens. Sequences that preempt each other in turn therefore generate
//! tokens meanwhile: there are at most as many preemptions as KV pages that generated tokens begin. Background work also
//! gives its place to each request that arrives (`background.rs`), at most once for each of them.

use std::cell::Cell;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;
use std::sync::MutexGuard;

use lapwing_traces::Nanos;

use super::accounts::{Accounts, Step};
use super::effect::SchedulerEffect;
use super::end::fail;
use super::models::Model;
use super::running::Sequence;
use super::state::Scheduler;
use crate::error::RunError;
use crate::policy::{Candidate, Charge, End, NoPrefixCache, PrefixView, QueuePolicy, Rank};
use crate::prefix::{PrefixCache, PrefixTree};
use crate::sequence::SequenceId;
use crate::stats::EngineStats;

mod entry;

pub(super) use entry::QueueEntry;

/// The policy, the time that is passed to it, and an account of what it decided.
pub(super) struct Queue {
    policy: Box<dyn QueuePolicy>,
    accounts: Accounts,
    pub(super) now: Nanos,
}

/// The prompts of waiting sequences, and what the prefix cache has of them.
struct Waiting<'a> {
    waiting: &'a [Box<Sequence>],
    /// The prefix caches of the models, locked once for all requests.
    trees: Vec<Option<MutexGuard<'a, PrefixTree>>>,
    /// Index at which the search for a sequence begins: policies ask for sequences in the order of `waiting`.
    next: Cell<usize>,
    /// Their numbers, and the matches that were asked for.
    matched: Vec<(SequenceId, Cell<Option<usize>>)>,
}

impl Waiting<'_> {
    fn place(&self, id: SequenceId) -> Option<usize> {
        let is_it = |(other, _): &(SequenceId, _)| *other == id;
        let (before, after) = self.matched.split_at(self.next.get());
        let at = match after.iter().position(is_it) {
            Some(at) => before.len() + at,
            None => before.iter().position(is_it)?,
        };
        self.next.set(at);
        Some(at)
    }
}

impl PrefixView for Waiting<'_> {
    fn matched(&self, sequence: SequenceId) -> usize {
        let Some(at) = self.place(sequence) else { return 0 };
        let known = &self.matched[at].1;
        let waiting = &self.waiting[at];
        let find = || waiting.matched(self.trees[waiting.model.0].as_deref());
        let matched = known.get().unwrap_or_else(find);
        known.set(Some(matched));
        matched
    }

    fn tokens(&self, sequence: SequenceId) -> &[u32] {
        self.place(sequence).map_or(&[], |at| &self.waiting[at].ids)
    }
}

impl Sequence {
    fn candidate(&self) -> Candidate<'_> {
        Candidate {
            sequence: self.id,
            client: &self.entry.client,
            prompt_tokens: self.times.prompt_tokens,
            generated_tokens: self.times.generated_tokens,
            tokens_max: self.entry.tokens_max,
            to_compute: self.due(),
            submitted: self.times.submitted,
            urgency: self.entry.urgency,
            running: self.entry.running,
        }
    }
}

impl Queue {
    pub(super) fn new(policy: Box<dyn QueuePolicy>) -> Queue {
        Queue { policy, accounts: Accounts::default(), now: Nanos::default() }
    }

    fn rank(&self, sequence: &Sequence) -> Rank {
        self.policy.rank(&sequence.candidate(), &NoPrefixCache, self.now)
    }

    /// Indices of waiting sequences, the best rank first; background work after all others.
    fn order(
        &mut self,
        waiting: &[Box<Sequence>],
        models: &[Model],
    ) -> impl Iterator<Item = usize> + use<> {
        let candidates: Vec<Candidate<'_>> = waiting.iter().map(|it| it.candidate()).collect();
        let matched = candidates.iter().map(|it| (it.sequence, Cell::new(None))).collect();
        let trees = models.iter().map(|model| model.prefixes.as_ref().map(PrefixCache::tree));
        let view = Waiting { waiting, trees: trees.collect(), next: Cell::new(0), matched };
        self.policy.survey(&candidates, &view, self.now);
        let rank = |(at, candidate): (usize, &Candidate<'_>)| {
            let rank = self.policy.rank(candidate, &view, self.now);
            Reverse((waiting[at].gives_way(), rank, candidate.sequence, at))
        };
        let mut ranked: BinaryHeap<_> = candidates.iter().enumerate().map(rank).collect();
        std::iter::from_fn(move || ranked.pop().map(|Reverse((_, _, _, at))| at))
    }

    fn may_overtake(&self, blocked: &Sequence) -> bool {
        self.policy.may_overtake(&blocked.candidate(), self.now)
    }

    /// Why a sequence that has just been sent is refused.
    pub(super) fn refusal(&mut self, sequence: &Sequence) -> Option<RunError> {
        let retry_after = self.policy.refuse(&sequence.candidate(), self.now)?;
        let account = self.accounts.of(&sequence.entry.client);
        self.accounts.on_step(account, Step::Refused, self.now);
        Some(RunError::RateLimited { client: sequence.entry.client.clone(), retry_after })
    }

    pub(super) fn on_arrival(&mut self, sequence: &mut Sequence) {
        sequence.entry.account = self.accounts.of(&sequence.entry.client);
        self.accounts.on_step(sequence.entry.account, Step::Arrived, self.now);
        self.policy.arrive(&sequence.candidate(), self.now);
    }

    fn on_admitted(&mut self, sequence: &mut Sequence) {
        sequence.entry.running = true;
        // A preemption loses the rows that were cached.
        let cached = if sequence.entry.lost_rows == 0 { sequence.times.cached_tokens } else { 0 };
        self.accounts.on_step(sequence.entry.account, Step::Admitted(cached), self.now);
        self.policy.admitted(&sequence.candidate(), self.now);
    }

    /// Adds what it knows to the state of the engine.
    pub(super) fn report(&self, stats: EngineStats) -> EngineStats {
        let (all, clients) = self.accounts.report(self.now);
        let (policy, policy_numbers) = (self.policy.name().to_owned(), self.policy.numbers());
        let latencies = self.accounts.latencies();
        EngineStats { all, latencies, clients, policy, policy_numbers, ..stats }
    }

    fn on_preempted(&mut self, sequence: &mut Sequence, lost: usize) {
        sequence.entry.running = false;
        sequence.entry.lose_rows(lost);
        self.accounts.on_step(sequence.entry.account, Step::Preempted, self.now);
        self.policy.evicted(&sequence.candidate(), lost, self.now);
    }

    /// Charges for rows that have been sent.
    pub(super) fn on_rows(&mut self, sequence: &Sequence, rows: Range<usize>) {
        let (lost, prompt) = (sequence.entry.lost_rows, sequence.times.prompt_tokens);
        let charge = Charge {
            prompt_rows: rows.end.min(prompt).saturating_sub(rows.start.max(lost)),
            recomputed_rows: rows.end.min(lost).saturating_sub(rows.start),
            generated_tokens: 0,
        };
        self.charge(sequence, charge);
    }

    /// Charges for the tokens that have been generated since there were `before`.
    pub(super) fn on_tokens(&mut self, sequence: &Sequence, before: usize) {
        let generated_tokens = sequence.times.generated_tokens - before;
        self.charge(sequence, Charge { generated_tokens, ..Charge::default() });
    }

    fn charge(&mut self, sequence: &Sequence, charge: Charge) {
        if charge != Charge::default() && !sequence.is_companion() {
            self.accounts.charge(sequence.entry.account, charge, self.now);
            self.policy.charge(&sequence.candidate(), charge, self.now);
        }
    }

    pub(super) fn on_end(&mut self, sequence: &Sequence, end: End) {
        let step = Step::Ended { end, ran: sequence.entry.running };
        self.accounts.on_step(sequence.entry.account, step, self.now);
        if end == End::Completed {
            self.accounts.completed(sequence.entry.account, &sequence.times);
        }
        self.policy.finish(&sequence.candidate(), end, self.now);
    }
}

impl Scheduler {
    /// Moves requests from the queue to the running ones, in order of rank, while the KV cache has
    /// pages for their tokens.
    pub(super) fn admit(&mut self, now: Nanos, effects: &mut Vec<SchedulerEffect>) {
        'admission: while self.running() < self.config.sequences_max
            || self.makes_room(None, effects)
        {
            // Otherwise background work that has just lost its place would take it again.
            let displaces = self.waiting.iter().any(|it| it.gives_way()) && self.foreground_waits();
            for at in self.queue.order(&self.waiting, &self.models) {
                let model = &self.models[self.waiting[at].model.0];
                if let Some(error) = model.kv.too_small_for(self.waiting[at].ids.len()) {
                    fail(&mut self.queue, *self.waiting.remove(at), &error, effects);
                    continue 'admission;
                }
                let is_displaced = displaces && self.waiting[at].gives_way();
                if is_displaced || self.awaits_prefix(at) {
                    continue;
                }
                let model = &mut self.models[self.waiting[at].model.0];
                if self.waiting[at].reserve_prompt(model, effects).is_ok() {
                    let mut sequence = *self.waiting.remove(at);
                    sequence.on_admitted(now, effects);
                    sequence.report_prompt(now, effects);
                    self.queue.on_admitted(&mut sequence);
                    self.running.push(sequence);
                    continue 'admission;
                }
                if self.makes_room(Some(at), effects) {
                    continue 'admission;
                }
                if !self.queue.may_overtake(&self.waiting[at]) {
                    return;
                }
            }
            return;
        }
    }

    /// Puts the running sequences in order of rank, with the ranks of now. Background work comes after all others.
    pub(super) fn order_running(&mut self) {
        if self.running.len() < 2 {
            return;
        }
        for sequence in self.running.iter_mut().filter(|sequence| !sequence.is_companion()) {
            sequence.entry.rank = self.queue.rank(sequence);
        }
        self.rank_companions();
        self.running.sort_unstable_by_key(|sequence| {
            (sequence.gives_way(), sequence.entry.rank, sequence.id)
        });
    }

    /// The running sequence to preempt for the one at `requester`: the last one after it, of the same
    /// model, that has no rows in flight.
    pub(super) fn victim(&self, requester: usize) -> Option<usize> {
        let model = self.running[requester].model;
        let idle = |sequence: &Sequence| sequence.model == model && sequence.in_flight == 0;
        let idle = self.running.iter().rposition(idle)?;
        (idle > requester).then_some(idle)
    }

    /// Takes the pages of a running sequence and puts it back in the queue.
    pub(super) fn preempt(&mut self, victim: usize, effects: &mut Vec<SchedulerEffect>) {
        let mut sequence = self.running.remove(victim);
        let lost = sequence.sent;
        sequence.preempt(effects);
        // It may have more tokens than when it waited before.
        sequence.matched.take();
        self.queue.on_preempted(&mut sequence, lost);
        self.waiting.push(Box::new(sequence));
    }
}
