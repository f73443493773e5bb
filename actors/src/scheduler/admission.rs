//! Admission and preemption: which requests run, in the order of the queue policy.
//!
//! Preemption terminates for any ranks. A sequence is admitted with pages for all of its
//! tokens, so one that needs a page has generated a token since it was last given pages; and a
//! preempted sequence keeps its tokens. Sequences that preempt each other in turn therefore generate
//! tokens meanwhile: there are at most as many preemptions as KV pages that generated tokens begin. Background work also
//! gives its place to each request that arrives (`background.rs`), at most once for each of them.

use lapwing_traces::Nanos;

use super::effect::SchedulerEffect;
use super::end::fail;
use super::running::Sequence;
use super::state::Scheduler;

impl Scheduler {
    /// Moves requests from the queue to the running ones, in order of rank, while the KV cache has
    /// pages for their tokens.
    pub(super) fn admit(&mut self, now: Nanos, effects: &mut Vec<SchedulerEffect>) {
        if !self.may_form_batch() {
            return;
        }
        'admission: while self.running() < self.config.sequences_max
            || self.makes_room(None, effects)
        {
            // Otherwise background work that has just lost its place would take it again.
            let displaces =
                self.waiting.background().any(Sequence::gives_way) && self.foreground_waits();
            let mut order = self.queue.order(&self.waiting, &self.models);
            while let Some(at) = order.next(&self.waiting) {
                if let Some(error) = self.never_fits(at) {
                    fail(&mut self.queue, self.waiting.remove(at), &error, effects);
                    continue 'admission;
                }
                let awaited = self.awaited_prefix(at);
                if let Some((running, rows)) = awaited {
                    self.running[running].want_state(rows);
                }
                let is_displaced = displaces && self.waiting[at].gives_way();
                if is_displaced || awaited.is_some() {
                    continue;
                }
                if !self.batches.holds(self.rows_to_compute(at)) {
                    return;
                }
                if self.is_promised(at, false) && self.reserve_prompt(at, effects) {
                    let mut sequence = self.waiting.remove(at);
                    self.batches.on_admitted(sequence.due());
                    self.decide_drafts(&mut sequence);
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

    /// Leases the pages of a waiting request's prompt. Returns whether there were enough.
    fn reserve_prompt(&mut self, at: usize, effects: &mut Vec<SchedulerEffect>) -> bool {
        let model = &mut self.models[self.waiting[at].model.0];
        self.waiting[at].reserve_prompt(model, effects).is_ok()
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
    /// model, that has no rows in flight. If room is promised, only the companion of a request.
    pub(super) fn victim(&self, requester: usize) -> Option<usize> {
        let (model, any) = (self.running[requester].model, self.may_preempt(requester));
        let idle = |sequence: &Sequence| {
            sequence.model == model && sequence.in_flight == 0 && (any || sequence.is_companion())
        };
        let idle = self.running.iter().rposition(idle)?;
        (idle > requester).then_some(idle)
    }

    /// Takes the pages of a running sequence and puts it back in the queue. The prefix cache keeps its states, so that it goes on there
    /// if its rows are not dropped.
    pub(super) fn preempt(&mut self, victim: usize, effects: &mut Vec<SchedulerEffect>) {
        if self.running[victim].states.is_some() {
            self.keep_rows(victim, true);
        }
        let mut sequence = self.running.remove(victim);
        let lost = sequence.sent;
        sequence.preempt(effects);
        // It may have more tokens than when it waited before.
        sequence.matched.take();
        self.queue.on_preempted(&mut sequence, lost);
        self.waiting.push(sequence);
    }
}
