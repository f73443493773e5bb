//! Throttles a live device to its modelled rate.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use lapwing_traces::{Clock, Nanos};

use crate::drive::wait::Waiter;

/// Keeps a device's modelled time: each run ends at its modelled end or when the device is done,
/// whichever is later. A worker holds the completion back until then and receives messages meanwhile;
/// a preparation lane waits.
pub(in crate::drive) struct Throttle {
    clock: Arc<dyn Clock>,
    start: Nanos,
    /// Modelled end of the latest run.
    free: Nanos,
    /// Nanoseconds by which real runs ended after their modelled end, in total.
    behind: Arc<AtomicU64>,
    /// The engine is stopping, so results are no longer needed.
    stopping: Arc<AtomicBool>,
}

/// Longest sleep between two checks of whether the engine is stopping.
const STOP_CHECK_INTERVAL: Duration = Duration::from_millis(100);

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

    /// The clock of the throttle.
    pub(in crate::drive) fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }

    /// Begins a run: now, or at the modelled end of the previous run if it was queued.
    pub(in crate::drive) fn begin(&mut self, queued: bool) {
        let now = self.clock.now();
        self.start = if queued && self.free <= now { self.free } else { now };
    }

    /// The modelled end of the begun run, which takes `time`; `None` if it is over already.
    pub(in crate::drive) fn end(&mut self, time: Duration) -> Option<Nanos> {
        let (end, now) = (self.start + time, self.clock.now());
        if now > end {
            self.behind.fetch_add(now.0 - end.0, Ordering::Relaxed);
        }
        self.free = now.max(end);
        (now < end).then_some(end)
    }

    /// Waits for the modelled end of the begun run, which takes `time`.
    pub(in crate::drive) fn wait(&mut self, time: Duration, waiter: &mut Waiter) {
        let Some(end) = self.end(time) else { return };
        while self.clock.now() + 2 * STOP_CHECK_INTERVAL < end {
            waiter.until(self.clock.now() + STOP_CHECK_INTERVAL);
            if self.stopping.load(Ordering::Relaxed) {
                return;
            }
        }
        waiter.until(end);
    }
}
