//! Applies the queue policy: the order of admission and of running sequences, and what each has been charged.

use std::cell::Cell;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::MutexGuard;

use lapwing_traces::Nanos;

use super::accounts::{Accounts, Step};
use super::models::Model;
use super::running::Sequence;
use super::waiting::Waiting;
use crate::error::RunError;
use crate::policy::{Candidate, Charge, End, NoPrefixCache, PrefixView, QueuePolicy, Rank};
use crate::prefix::{PrefixCache, PrefixTree};
use crate::sequence::SequenceId;
use crate::stats::EngineStats;

pub(super) mod entry;

/// The policy, the time that is passed to it, and an account of what it decided.
pub(super) struct Queue {
    policy: Box<dyn QueuePolicy>,
    accounts: Accounts,
    pub(super) now: Nanos,
}

/// The prompts of waiting sequences, and what the prefix cache has of them.
struct Prompts<'a> {
    waiting: &'a Waiting,
    /// The prefix caches of the models, locked once for all requests.
    trees: Vec<Option<MutexGuard<'a, PrefixTree>>>,
    /// Index at which the search for a sequence begins: policies ask for sequences in the order of `waiting`.
    next: Cell<usize>,
    /// Their numbers, and the matches that were asked for.
    matched: Vec<(SequenceId, Cell<Option<usize>>)>,
}

impl Prompts<'_> {
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

impl PrefixView for Prompts<'_> {
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

/// Indices of waiting sequences in the order of the policy. They hold until one leaves or comes.
pub(super) enum Order {
    Ranked(BinaryHeap<Reverse<(bool, Rank, SequenceId, usize)>>),
    /// Without ranks, those behind the next one are not looked at. First the others, then background work.
    ByArrival {
        next: usize,
        background: bool,
    },
}

impl Order {
    /// The next one.
    pub(super) fn next(&mut self, waiting: &Waiting) -> Option<usize> {
        let (next, background) = match self {
            Order::Ranked(ranked) => return ranked.pop().map(|Reverse((_, _, _, at))| at),
            Order::ByArrival { next, background } => (next, background),
        };
        loop {
            let found = (*next..waiting.len()).find(|at| waiting[*at].gives_way() == *background);
            if let Some(found) = found {
                *next = found + 1;
                return Some(found);
            }
            let has_more = !*background && waiting.background().next().is_some();
            (*next, *background) = (if has_more { 0 } else { waiting.len() }, true);
            if !has_more {
                return None;
            }
        }
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

    pub(super) fn rank(&self, sequence: &Sequence) -> Rank {
        self.policy.rank(&sequence.candidate(), &NoPrefixCache, self.now)
    }

    /// The order of waiting sequences, the best rank first; background work after all others.
    pub(super) fn order(&mut self, waiting: &Waiting, models: &[Model]) -> Order {
        if self.policy.goes_by_arrival() {
            return Order::ByArrival { next: 0, background: false };
        }
        let candidates: Vec<Candidate<'_>> = waiting.iter().map(Sequence::candidate).collect();
        let matched = candidates.iter().map(|it| (it.sequence, Cell::new(None))).collect();
        let trees = models.iter().map(|model| model.prefixes.as_ref().map(PrefixCache::tree));
        let view = Prompts { waiting, trees: trees.collect(), next: Cell::new(0), matched };
        self.policy.survey(&candidates, &view, self.now);
        let rank = |(at, candidate): (usize, &Candidate<'_>)| {
            let rank = self.policy.rank(candidate, &view, self.now);
            Reverse((waiting[at].gives_way(), rank, candidate.sequence, at))
        };
        Order::Ranked(candidates.iter().enumerate().map(rank).collect())
    }

    pub(super) fn may_overtake(&self, blocked: &Sequence) -> bool {
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

    pub(super) fn on_admitted(&mut self, sequence: &mut Sequence) {
        sequence.entry.running = true;
        // A preemption loses the rows that were cached.
        let (cached, recomputed) = match sequence.entry.lost_rows {
            0 => (sequence.times.cached_tokens, sequence.times.recomputed_tokens),
            _ => (0, 0),
        };
        self.accounts.on_step(
            sequence.entry.account,
            Step::Admitted { cached, recomputed },
            self.now,
        );
        self.policy.admitted(&sequence.candidate(), self.now);
    }

    /// Adds what it knows to the state of the engine.
    pub(super) fn report(&self, stats: EngineStats) -> EngineStats {
        let (all, clients) = self.accounts.report(self.now);
        let (policy, policy_numbers) = (self.policy.name().to_owned(), self.policy.numbers());
        let latencies = self.accounts.latencies();
        EngineStats { all, latencies, clients, policy, policy_numbers, ..stats }
    }

    pub(super) fn on_preempted(&mut self, sequence: &mut Sequence, lost: usize) {
        sequence.entry.running = false;
        sequence.entry.lose_rows(lost);
        self.accounts.on_step(sequence.entry.account, Step::Preempted, self.now);
        self.policy.evicted(&sequence.candidate(), lost, self.now);
    }

    /// Charges for the latest rows of a sequence, which have been sent.
    pub(super) fn on_rows(&mut self, sequence: &mut Sequence, rows: usize) {
        let rows = sequence.sent - rows..sequence.sent;
        let (lost, prompt) = (sequence.entry.lost_rows, sequence.times.prompt_tokens);
        let charge = Charge {
            prompt_rows: rows.end.min(prompt).saturating_sub(rows.start.max(lost)),
            recomputed_rows: rows.end.min(lost).saturating_sub(rows.start),
            generated_tokens: 0,
        };
        self.charge(sequence, charge);
        sequence.entry.on_served(self.now);
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
