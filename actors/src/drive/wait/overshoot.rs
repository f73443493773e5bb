//! The overshoot of sleeps.

use std::thread;
use std::time::Duration;

use lapwing_traces::Clock;

/// Number of recent sleeps in the statistics.
const KEPT: usize = 32;
/// Length of the trial sleeps.
const TRIAL: Duration = Duration::from_micros(100);

/// Overshoot of the latest sleeps of a thread: actual − requested length, in ns. Measured at the start
/// of the thread and with every sleep after it.
#[derive(Clone, Debug)]
pub struct Overshoot {
    latest: [u64; KEPT],
    seen: usize,
    sorted: [u64; KEPT],
}

impl Overshoot {
    /// Measures the calling thread: sets the finest timer slack and sleeps a few dozen times, which
    /// takes some milliseconds.
    pub fn measure(clock: &dyn Clock) -> Overshoot {
        set_timer_slack();
        let requested = u64::try_from(TRIAL.as_nanos()).unwrap_or(u64::MAX);
        Overshoot::of(std::array::from_fn(|_| {
            let since = clock.now();
            thread::park_timeout(TRIAL);
            clock.now().0.saturating_sub(since.0).saturating_sub(requested)
        }))
    }

    /// From the overshoots of the latest sleeps, in ns.
    pub fn of(latest: [u64; KEPT]) -> Overshoot {
        let mut sorted = latest;
        sorted.sort_unstable();
        Overshoot { latest, seen: KEPT, sorted }
    }

    /// Median, in ns.
    pub fn p50(&self) -> u64 {
        self.sorted[KEPT / 2]
    }

    /// 90th percentile, in ns, at most three medians: a thread that occasionally loses its core does
    /// not have a coarse timer.
    pub fn p90(&self) -> u64 {
        self.sorted[KEPT * 9 / 10].min(self.p50().saturating_mul(3))
    }

    /// Records the overshoot of a sleep that ran to its end, in ns.
    pub fn learn(&mut self, ns: u64) {
        self.latest[self.seen % KEPT] = ns;
        self.seen += 1;
        self.sorted = self.latest;
        self.sorted.sort_unstable();
    }
}

/// Reduces the timer slack of the calling thread, which is about 50 µs by default, to the minimum.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn set_timer_slack() {
    // On failure, sleeps overshoot more, and the measurement shows it.
    let _ = rustix::thread::set_current_timer_slack(Some(std::num::NonZeroU64::MIN));
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn set_timer_slack() {}

#[cfg(test)]
mod tests {
    use super::*;
    use lapwing_traces::OsClock;

    #[test]
    fn a_real_thread_overshoots_within_bounds() {
        let overshoot = Overshoot::measure(&OsClock::start());
        assert!(overshoot.p50() > 0, "a real sleep always overshoots");
        assert!(overshoot.p90() >= overshoot.p50());
    }

    #[test]
    fn a_lost_core_is_not_a_coarse_timer_but_a_coarse_timer_is_learnt() {
        let mut overshoot = Overshoot::of([30_000; KEPT]);
        (0..5).for_each(|_| overshoot.learn(4_000_000));
        assert_eq!((overshoot.p50(), overshoot.p90()), (30_000, 90_000));
        (0..KEPT).for_each(|_| overshoot.learn(80_000));
        assert_eq!((overshoot.p50(), overshoot.p90()), (80_000, 80_000));
    }
}
