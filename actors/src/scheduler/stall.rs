//! Causes of rows that are ready but not dispatched. For recordings only; no decision depends on
//! them.

use lapwing_traces::Nanos;
use lapwing_traces::event::StallCause;

use super::running::Sequence;
use super::state::Scheduler;

impl Scheduler {
    /// Records the stall of every sequence with undispatched rows: the latest cause, the earliest
    /// time. A stall for a missing graph is separate from what comes before and after it, because its
    /// preparation is recorded.
    pub(super) fn record_stalls(&mut self, now: Nanos) {
        for at in 0..self.running.len() {
            let cause = self.stall_cause(&self.running[at]);
            let sequence = &mut self.running[at];
            let graph = StallCause::GraphMissing;
            let before = sequence.stall.filter(|(before, _)| {
                Some(*before) == cause || (*before != graph && cause != Some(graph))
            });
            let since = before.map_or(now, |(_, since)| since);
            sequence.stall = cause.map(|cause| (cause, since));
        }
        self.waiting.record_stalls(now);
    }

    fn stall_cause(&self, sequence: &Sequence) -> Option<StallCause> {
        let model = &self.models[sequence.model.0];
        if sequence.due() == 0 {
            None
        } else if sequence.lacks_graphs {
            Some(StallCause::GraphMissing)
        } else if !sequence.is_decoding() {
            Some(StallCause::BackPressure)
        } else if !model.decoding.is_empty() {
            // All decoding sequences share one batch, and one batch is in flight.
            Some(StallCause::PolicyBarrier)
        } else if !sequence.has_pages(&model.kv) {
            Some(StallCause::SlotPool)
        } else {
            Some(StallCause::BackPressure)
        }
    }
}
