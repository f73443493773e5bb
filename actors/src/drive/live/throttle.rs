//! Holding a live device to its modelled rate.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use lapwing_traces::{Clock, Nanos};

use crate::drive::wait::Waiter;

/// Keeps a device's modelled time: what it runs ends when the model says, or when it is really
/// done, whichever is later.
pub(in crate::drive) struct Throttle {
    clock: Arc<dyn Clock>,
    start: Nanos,
    /// When the latest run ended by the model.
    free: Nanos,
    behind: Arc<AtomicU64>,
    /// Nobody waits for results any more.
    stopping: Arc<AtomicBool>,
}

/// Longest sleep without a look at whether the engine still runs.
const LOOK: Duration = Duration::from_millis(100);

impl Throttle {
    /// A device that has run nothing. `behind` counts the nanoseconds by which real runs ended
    /// after their modelled end. Once `stopping` is set, waits end soon.
    pub(in crate::drive) fn new(
        clock: Arc<dyn Clock>,
        behind: Arc<AtomicU64>,
        stopping: Arc<AtomicBool>,
    ) -> Throttle {
        let now = clock.now();
        Throttle { clock, start: now, free: now, behind, stopping }
    }

    /// The clock that it goes by.
    pub(in crate::drive) fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }

    /// A run begins: now, or if it was queued, when the one before it ended by the model.
    pub(in crate::drive) fn begin(&mut self, queued: bool) {
        let now = self.clock.now();
        self.start = if queued && self.free <= now { self.free } else { now };
    }

    /// Waits for the end of a run that takes `time`.
    pub(in crate::drive) fn wait(&mut self, time: Duration, waiter: &mut Waiter) {
        let end = self.start + time;
        let now = self.clock.now();
        if now > end {
            self.behind.fetch_add(now.0 - end.0, Ordering::Relaxed);
            self.free = now;
            return;
        }
        while self.clock.now() + 2 * LOOK < end {
            waiter.until(self.clock.now() + LOOK);
            if self.stopping.load(Ordering::Relaxed) {
                return;
            }
        }
        waiter.until(end);
        self.free = end;
    }
}
