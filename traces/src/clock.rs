//! Time in nanoseconds since the start of the clock, which is real or simulated.

use std::fmt;
use std::ops::{Add, Sub};
use std::time::{Duration, Instant};

mod mapped;

pub use mapped::{ClockSample, DeviceClock, DeviceClockError};

/// A point in time, in nanoseconds since the clock's start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nanos(pub u64);

impl Nanos {
    /// Time since `earlier`; zero if `earlier` is later.
    pub fn since(self, earlier: Nanos) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Nanos {
    type Output = Nanos;

    fn add(self, span: Duration) -> Nanos {
        Nanos(self.0.saturating_add(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)))
    }
}

impl Sub for Nanos {
    type Output = Duration;

    fn sub(self, earlier: Nanos) -> Duration {
        self.since(earlier)
    }
}

impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3} ms", self.0 as f64 / 1e6)
    }
}

/// Source of the current time.
pub trait Clock: Send + Sync {
    /// Nanoseconds since the start of the clock. Never decreases.
    fn now(&self) -> Nanos;
}

/// The operating system's monotonic clock.
#[derive(Clone, Copy, Debug)]
pub struct OsClock {
    start: Instant,
}

impl OsClock {
    /// Starts a clock at zero.
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the real clock")]
    pub fn start() -> OsClock {
        OsClock { start: Instant::now() }
    }
}

impl Clock for OsClock {
    fn now(&self) -> Nanos {
        Nanos(u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_never_goes_back() {
        let clock = OsClock::start();
        let mut last = clock.now();
        for _ in 0..1000 {
            let now = clock.now();
            assert!(now >= last);
            last = now;
        }
    }

    #[test]
    fn the_time_since_a_later_moment_is_zero() {
        assert_eq!(Nanos(3) - Nanos(5), Duration::ZERO);
        assert_eq!(Nanos(u64::MAX) + Duration::from_secs(1), Nanos(u64::MAX));
        assert_eq!(Nanos(1_500) - Nanos(500), Duration::from_nanos(1_000));
    }
}
