//! Timing of repeated runs.

use std::time::Duration;

/// Timing of repeated runs.
pub(super) struct Rounds<'a> {
    pub(super) rounds: usize,
    pub(super) now: &'a dyn Fn() -> Duration,
}

impl Rounds<'_> {
    pub(super) fn time(&self, run: &dyn Fn()) -> Duration {
        let start = (self.now)();
        run();
        // A clock that does not advance would make the rate infinite.
        (self.now)().saturating_sub(start).max(Duration::from_nanos(1))
    }

    pub(super) fn fastest(&self, run: &dyn Fn()) -> f64 {
        let times = (0..self.rounds).map(|_| self.time(run).as_secs_f64());
        times.fold(f64::INFINITY, f64::min)
    }
}
