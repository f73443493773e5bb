//! Converts the timestamps of a device to host time.

use std::time::Duration;

use super::Nanos;

/// Largest relative deviation of a tick from its stated length that is assumed as long as the
/// samples allow it. Crystals deviate by a tenth of that.
const DRIFT_MAX: f64 = 500e-6;

/// Largest number of samples compared pairwise; those with the smallest round trips are used.
const PAIRS_FROM: usize = 64;

/// One comparison of both clocks. The host's clock is read, then the device's, then the host's
/// again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockSample {
    /// Host time before the device's clock was read.
    pub before: Nanos,
    /// Timestamp of the device, in ticks.
    pub device: u64,
    /// Host time after the device's clock was read.
    pub after: Nanos,
}

impl ClockSample {
    fn round_trip(&self) -> u64 {
        self.after.0.saturating_sub(self.before.0)
    }
}

/// Why the clocks cannot be compared.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceClockError {
    /// There are no samples.
    #[error(
        "there is no sample of the device's clock; take at least one, better several before and after the run"
    )]
    NoSample,
    /// The length of a tick is not above 0.
    #[error(
        "a tick of {tick_ns} ns is not possible; give the length that the device states, above 0"
    )]
    Tick {
        /// Length given, in ns.
        tick_ns: f64,
    },
    /// The host's clock went backwards within a sample.
    #[error(
        "sample {index} ends before it starts; read the host's clock before and after the device's"
    )]
    Backwards {
        /// Index of the sample.
        index: usize,
    },
}

/// Maps timestamps of a device to host time.
///
/// The sample with the smallest round trip (the anchor) fixes the offset: the device's clock was
/// read in the middle of it, ± half the round trip. The drift is the median of the slopes between
/// all pairs of the tightest samples (Theil–Sen), limited to the range that all samples allow: the
/// device's clock was read between `before` and `after`. The device's counter must not wrap.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DeviceClock {
    tick_ns: f64,
    /// Timestamp of the anchor, in ticks.
    device: u64,
    /// Middle of the anchor, in host ns.
    host: f64,
    drift: f64,
    drift_error: f64,
    /// Half the round trip of the anchor, in ns.
    half_round_trip: f64,
    /// Largest distance of a sample from the fitted line, in ns.
    misfit: f64,
}

impl DeviceClock {
    /// Fits the mapping to the samples. `tick_ns` is the stated length of the device's tick in
    /// nanoseconds.
    pub fn fit(tick_ns: f64, samples: &[ClockSample]) -> Result<DeviceClock, DeviceClockError> {
        if !(tick_ns > 0.0 && tick_ns.is_finite()) {
            return Err(DeviceClockError::Tick { tick_ns });
        }
        if let Some(index) = samples.iter().position(|sample| sample.before > sample.after) {
            return Err(DeviceClockError::Backwards { index });
        }
        let mut tight = samples.to_vec();
        tight.sort_by_key(ClockSample::round_trip);
        let anchor = *tight.first().ok_or(DeviceClockError::NoSample)?;
        let mut clock = DeviceClock {
            tick_ns,
            device: anchor.device,
            host: anchor.before.0 as f64 + anchor.round_trip() as f64 / 2.0,
            drift: 0.0,
            drift_error: 0.0,
            half_round_trip: anchor.round_trip() as f64 / 2.0,
            misfit: 0.0,
        };
        let (low, high) = clock.drift_range(anchor, samples);
        tight.truncate(PAIRS_FROM);
        clock.drift = clock.median_drift(&tight).clamp(low, high);
        clock.drift_error = (high - clock.drift).max(clock.drift - low);
        let misfits = samples.iter().map(|sample| clock.misfit(sample));
        clock.misfit = misfits.fold(0.0, f64::max);
        Ok(clock)
    }

    /// Host time of a timestamp.
    pub fn to_host(&self, device: u64) -> Nanos {
        // The cast saturates if the time is out of range.
        Nanos((self.host + self.elapsed(device) * (1.0 + self.drift)).round() as u64)
    }

    /// Error bound of [`to_host`](DeviceClock::to_host): half the smallest round trip, plus the
    /// uncertainty of the drift with growing distance from the anchor, plus the misfit if samples
    /// contradict each other.
    pub fn error(&self, device: u64) -> Duration {
        let away = self.elapsed(device).abs() * self.drift_error;
        let nanos = self.half_round_trip + away + self.misfit;
        Duration::from_nanos(nanos.ceil() as u64)
    }

    /// Half the smallest round trip: the error at the time of the anchor.
    pub fn smallest_error(&self) -> Duration {
        Duration::from_nanos(self.half_round_trip.ceil() as u64)
    }

    /// Relative deviation of the tick from its stated length, in host time; positive if it is
    /// longer.
    pub fn drift(&self) -> f64 {
        self.drift
    }

    /// Time since the anchor by the stated tick, in ns.
    fn elapsed(&self, device: u64) -> f64 {
        (i128::from(device) - i128::from(self.device)) as f64 * self.tick_ns
    }

    /// Smallest and largest drift that agree with every sample.
    fn drift_range(&self, anchor: ClockSample, samples: &[ClockSample]) -> (f64, f64) {
        let (mut low, mut high) = (f64::NEG_INFINITY, f64::INFINITY);
        for sample in samples {
            let elapsed = self.elapsed(sample.device);
            if elapsed == 0.0 {
                continue;
            }
            let least = gap(anchor.after, sample.before) / elapsed - 1.0;
            let most = gap(anchor.before, sample.after) / elapsed - 1.0;
            low = low.max(least.min(most));
            high = high.min(least.max(most));
        }
        let believed = (low.max(-DRIFT_MAX), high.min(DRIFT_MAX));
        match (believed.0 <= believed.1, low <= high) {
            (true, _) => believed,
            // The stated length of the tick is wrong.
            (false, true) => (low, high),
            // The samples contradict each other; `misfit` says by how much.
            (false, false) => (high, low),
        }
    }

    fn median_drift(&self, samples: &[ClockSample]) -> f64 {
        let mut slopes = Vec::new();
        for (at, a) in samples.iter().enumerate() {
            for b in &samples[at + 1..] {
                let elapsed = self.elapsed(b.device) - self.elapsed(a.device);
                if elapsed != 0.0 {
                    let middle = (gap(a.before, b.before) + gap(a.after, b.after)) / 2.0;
                    slopes.push(middle / elapsed - 1.0);
                }
            }
        }
        slopes.sort_by(f64::total_cmp);
        slopes.get(slopes.len() / 2).copied().unwrap_or(0.0)
    }

    /// Distance of a sample from the fitted line, in ns.
    fn misfit(&self, sample: &ClockSample) -> f64 {
        let on_line = self.elapsed(sample.device) * (1.0 + self.drift);
        let host = self.host + on_line;
        (sample.before.0 as f64 - host).max(host - sample.after.0 as f64).max(0.0)
    }
}

/// Difference of two times, in ns.
fn gap(from: Nanos, to: Nanos) -> f64 {
    (i128::from(to.0) - i128::from(from.0)) as f64
}
