//! A device's own time-stamps as times of the host's clock.

use std::time::Duration;

use super::Nanos;

/// Largest share by which a device's ticks are believed to differ from their stated length, as
/// long as the samples allow it. Crystals differ by a tenth of that.
const DRIFT_MAX: f64 = 500e-6;

/// Most samples, the tightest ones, of which each two are compared.
const PAIRS_FROM: usize = 64;

/// One comparison of both clocks: the host's clock is read, then the device's, then the host's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockSample {
    /// Host time before the device was asked.
    pub before: Nanos,
    /// The device's time-stamp, in ticks.
    pub device: u64,
    /// Host time after it had answered.
    pub after: Nanos,
}

impl ClockSample {
    fn round_trip(&self) -> u64 {
        self.after.0.saturating_sub(self.before.0)
    }
}

/// Why samples say nothing.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceClockError {
    /// There is no sample.
    #[error(
        "no sample of the device's clock; take at least one, better some before and after the run"
    )]
    NoSample,
    /// A tick has no length.
    #[error("a tick of {tick_ns} ns is none; give the length that the device states, above 0")]
    Tick {
        /// The length.
        tick_ns: f64,
    },
    /// The host's clock went back.
    #[error(
        "sample {index} ends before it begins; read the host's clock before and after the device's"
    )]
    Backwards {
        /// Position of the sample.
        index: usize,
    },
}

/// Maps a device's time-stamps to host time.
///
/// The sample with the smallest round trip fixes the offset: the device was read in the middle of
/// it, give or take half. The drift is the median of the slopes between each two of the tightest
/// samples (Theil–Sen), kept within what every sample says about the first one: the device was
/// read after `before` and before `after`. The device's counter must not wrap.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DeviceClock {
    tick_ns: f64,
    /// Time-stamp of the tightest sample.
    device: u64,
    /// Middle of the tightest sample, in host ns.
    host: f64,
    drift: f64,
    drift_error: f64,
    /// In ns; of the tightest sample.
    half_round_trip: f64,
    /// By how much a sample contradicts the line, in ns.
    misfit: f64,
}

impl DeviceClock {
    /// Compares the clocks. `tick_ns` is the stated length of the device's tick in nanoseconds.
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

    /// Host time of a time-stamp.
    pub fn to_host(&self, device: u64) -> Nanos {
        // Out of range, it is the nearest time that there is.
        Nanos((self.host + self.elapsed(device) * (1.0 + self.drift)).round() as u64)
    }

    /// How far [`to_host`](DeviceClock::to_host) may be off: half the smallest round trip, more
    /// away from that sample as far as the drift is uncertain, and more if samples contradict
    /// each other.
    pub fn error(&self, device: u64) -> Duration {
        let away = self.elapsed(device).abs() * self.drift_error;
        let nanos = self.half_round_trip + away + self.misfit;
        Duration::from_nanos(nanos.ceil() as u64)
    }

    /// Half the smallest round trip: the error at its time.
    pub fn smallest_error(&self) -> Duration {
        Duration::from_nanos(self.half_round_trip.ceil() as u64)
    }

    /// By which share a tick is longer than stated, in host time.
    pub fn drift(&self) -> f64 {
        self.drift
    }

    /// Stated time from the tightest sample, in ns.
    fn elapsed(&self, device: u64) -> f64 {
        (i128::from(device) - i128::from(self.device)) as f64 * self.tick_ns
    }

    /// Least and greatest drift with which every sample can be true.
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
            // The stated length of a tick is wrong.
            (false, true) => (low, high),
            // The samples contradict each other: `misfit` tells by how much.
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

    /// How far the line passes beside what a sample says.
    fn misfit(&self, sample: &ClockSample) -> f64 {
        let on_line = self.elapsed(sample.device) * (1.0 + self.drift);
        let host = self.host + on_line;
        (sample.before.0 as f64 - host).max(host - sample.after.0 as f64).max(0.0)
    }
}

/// From one time to another, in ns.
fn gap(from: Nanos, to: Nanos) -> f64 {
    (i128::from(to.0) - i128::from(from.0)) as f64
}
