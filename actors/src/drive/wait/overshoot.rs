//! How much too long a thread sleeps.

use std::thread;
use std::time::Duration;

use lapwing_traces::Clock;

/// Sleeps that are remembered.
const KEPT: usize = 32;
/// Length of the sleeps that are measured at the start.
const TRIAL: Duration = Duration::from_micros(100);

/// By how much the latest sleeps of a thread were too long, in ns. Measured at the thread's start,
/// and with every sleep after it.
#[derive(Clone, Debug)]
pub struct Overshoot {
    latest: [u64; KEPT],
    seen: usize,
    sorted: [u64; KEPT],
}

impl Overshoot {
    /// Measures the calling thread: asks the operating system for the finest timers, and sleeps a
    /// few dozen times, which takes some milliseconds.
    pub fn measure(clock: &dyn Clock) -> Overshoot {
        set_timer_slack();
        let asked = u64::try_from(TRIAL.as_nanos()).unwrap_or(u64::MAX);
        Overshoot::of(std::array::from_fn(|_| {
            let since = clock.now();
            thread::park_timeout(TRIAL);
            clock.now().0.saturating_sub(since.0).saturating_sub(asked)
        }))
    }

    /// A thread whose latest sleeps were too long by that much, in ns.
    pub fn of(latest: [u64; KEPT]) -> Overshoot {
        let mut sorted = latest;
        sorted.sort_unstable();
        Overshoot { latest, seen: KEPT, sorted }
    }

    /// Median.
    pub fn p50(&self) -> u64 {
        self.sorted[KEPT / 2]
    }

    /// Nine of ten sleeps were not longer than this too long. Not more than three medians: a
    /// thread that now and then does not get its core is not a coarse timer.
    pub fn p90(&self) -> u64 {
        self.sorted[KEPT * 9 / 10].min(self.p50().saturating_mul(3))
    }

    /// A sleep that nothing cut short was too long by `ns`.
    pub fn learn(&mut self, ns: u64) {
        self.latest[self.seen % KEPT] = ns;
        self.seen += 1;
        self.sorted = self.latest;
        self.sorted.sort_unstable();
    }
}

/// Lets the calling thread's timers fire when they are due, instead of some 50 µs later.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn set_timer_slack() {
    // Without it, sleeps are coarser, which is then measured.
    let _ = rustix::thread::set_current_timer_slack(Some(std::num::NonZeroU64::MIN));
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn set_timer_slack() {}

#[cfg(test)]
mod tests {
    use super::*;
    use lapwing_traces::OsClock;

    #[test]
    fn a_real_thread_sleeps_too_long_but_not_without_bound() {
        let overshoot = Overshoot::measure(&OsClock::start());
        assert!(overshoot.p50() > 0, "a sleep that is never too long is no sleep");
        assert!(overshoot.p90() >= overshoot.p50());
    }

    #[test]
    fn one_lost_core_is_not_a_coarse_timer_but_a_coarse_timer_is_learnt() {
        let mut overshoot = Overshoot::of([30_000; KEPT]);
        (0..5).for_each(|_| overshoot.learn(4_000_000));
        assert_eq!((overshoot.p50(), overshoot.p90()), (30_000, 90_000));
        (0..KEPT).for_each(|_| overshoot.learn(80_000));
        assert_eq!((overshoot.p50(), overshoot.p90()), (80_000, 80_000));
    }
}
