//! What is due but cannot be sent, and why: for a recording, nothing depends on it.

use lapwing_traces::Nanos;
use lapwing_traces::event::HoldCause;

use super::Scheduler;
use super::running::Sequence;

impl Scheduler {
    /// Remembers of every sequence whose rows stay behind why, and since when: the latest cause,
    /// the earliest time.
    pub(super) fn hold_the_rest(&mut self, now: Nanos) {
        for at in 0..self.running.len() {
            let cause = self.why_held(&self.running[at]);
            let sequence = &mut self.running[at];
            let since = sequence.held.map_or(now, |(_, since)| since);
            sequence.held = cause.map(|cause| (cause, since));
        }
        // They wait for pages or for a place among the running ones.
        for sequence in self.waiting.iter_mut().filter(|s| s.held.is_none()) {
            sequence.held = Some((HoldCause::SlotPool, now));
        }
    }

    fn why_held(&self, sequence: &Sequence) -> Option<HoldCause> {
        if sequence.due() == 0 {
            None
        } else if !sequence.is_decoding() {
            Some(HoldCause::BackPressure)
        } else if self.decoding.is_some() {
            // All sequences that decode stay in one batch, and one is on its way.
            Some(HoldCause::PolicyBarrier)
        } else if !sequence.has_pages(&self.kv) {
            Some(HoldCause::SlotPool)
        } else {
            Some(HoldCause::BackPressure)
        }
    }
}
