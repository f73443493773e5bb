//! Observes a device while it runs a job: its steps, and the time of its conversions.

use std::ops::Range;
use std::time::Duration;

use lapwing_kernels::device::{Observer, Step};
use lapwing_traces::{Clock, Nanos};

use crate::drive::modelled::StepLog;

/// Steps of a device other than nodes, with the time of its conversions.
pub(super) struct Log<'a> {
    pub(super) steps: StepLog,
    clock: &'a dyn Clock,
    /// End of the previous step.
    last: Nanos,
    pub(super) converted: Duration,
    pub(super) bytes: u64,
}

impl<'a> Log<'a> {
    /// An empty log that starts now.
    pub(super) fn start(clock: &'a dyn Clock) -> Log<'a> {
        let (steps, last) = (StepLog::default(), clock.now());
        Log { steps, clock, last, converted: Duration::ZERO, bytes: 0 }
    }
}

impl Observer for Log<'_> {
    fn nodes_done(&mut self, _nodes: Range<usize>) {
        self.last = self.clock.now();
    }

    fn weights_read(&mut self, _bytes: u64) {
        self.last = self.clock.now();
    }

    fn step_done(&mut self, step: Step) {
        let now = self.clock.now();
        if let Step::Converted { bytes } = step {
            self.converted += Duration::from_nanos(now.0.saturating_sub(self.last.0));
            self.bytes += bytes;
        }
        self.last = now;
        self.steps.step_done(step);
    }
}
