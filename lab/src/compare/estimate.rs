//! Estimates how long a comparison still takes.

use std::collections::HashMap;
use std::time::Duration;

use lapwing_traces::{Clock, Nanos};

/// Runs of one strategy at one length that are still to come.
#[derive(Clone, Copy, Debug)]
struct Pending {
    each: Duration,
    runs: usize,
}

/// The remaining time: predicted times of the remaining runs, scaled by how long the runs so far took
/// compared with their predictions. Building engines and generating tokens are part of that scale.
pub(super) struct Estimate<C> {
    clock: C,
    start: Nanos,
    /// By strategy and length.
    pending: HashMap<(usize, usize), Pending>,
    /// Predicted time of the finished runs.
    done: Duration,
}

impl<C: Clock> Estimate<C> {
    /// An estimate without any predictions.
    pub(super) fn new(clock: C) -> Estimate<C> {
        let start = clock.now();
        Estimate { clock, start, pending: HashMap::new(), done: Duration::ZERO }
    }

    /// Sets the predicted times of all strategies at one length. A strategy without one is expected to
    /// take as long as the slowest of the others. Each strategy runs `runs` times.
    pub(super) fn expect(&mut self, length: usize, times: &[Option<Duration>], runs: usize) {
        let slowest = times.iter().flatten().max().copied().unwrap_or_default();
        for (at, time) in times.iter().enumerate() {
            self.pending.insert((at, length), Pending { each: time.unwrap_or(slowest), runs });
        }
    }

    /// A run has ended.
    pub(super) fn ended(&mut self, key: (usize, usize)) {
        if let Some(pending) = self.pending.get_mut(&key) {
            pending.runs = pending.runs.saturating_sub(1);
            self.done += pending.each;
        }
    }

    /// A strategy is impossible: its runs will not take place.
    pub(super) fn absent(&mut self, strategy: usize) {
        self.pending.retain(|(at, _), _| *at != strategy);
    }

    /// The remaining time; `None` without predictions.
    pub(super) fn left(&self) -> Option<Duration> {
        let left: Duration = self.pending.values().map(|p| p.each * p.runs as u32).sum();
        let elapsed = self.clock.now().0.saturating_sub(self.start.0) as f64 / 1e9;
        let scale = match self.done.as_secs_f64() {
            done if done > 0.0 => elapsed / done,
            _ => 1.0,
        };
        (!self.pending.is_empty()).then(|| left.mul_f64(scale))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    struct Seconds(AtomicU64);

    impl Clock for &Seconds {
        fn now(&self) -> Nanos {
            Nanos(self.0.load(Ordering::Relaxed) * 1_000_000_000)
        }
    }

    #[test]
    fn the_remaining_time_is_scaled_by_the_runs_so_far() {
        let seconds = |s| Some(Duration::from_secs(s));
        let clock = Seconds(AtomicU64::new(100));
        let mut estimate = Estimate::new(&clock);
        assert_eq!(estimate.left(), None, "nothing is predicted");
        estimate.expect(0, &[seconds(1), seconds(3), None], 2);
        assert_eq!(estimate.left(), seconds(14), "the unknown strategy is as slow as the slowest");
        clock.0.store(102, Ordering::Relaxed);
        estimate.ended((0, 0));
        assert_eq!(estimate.left(), seconds(26), "the first run took twice the predicted second");
        estimate.absent(1);
        assert_eq!(estimate.left(), seconds(14));
        for run in [(0, 0), (2, 0), (2, 0), (2, 0)] {
            estimate.ended(run);
        }
        assert_eq!(estimate.left(), seconds(0), "more runs than expected leave nothing");
    }
}
