//! Timestamps of a device with known offset, drift and jitter are mapped to the correct host times.

use std::time::Duration;

use lapwing_traces::Nanos;
use lapwing_traces::clock::{ClockSample, DeviceClock, DeviceClockError};
use proptest::prelude::*;

/// A device whose tick is longer than stated.
#[derive(Clone, Copy, Debug)]
struct Planted {
    tick_ns: f64,
    drift: f64,
    /// Host time of tick 0, in ns.
    offset: f64,
}

impl Planted {
    fn host(&self, device: u64) -> f64 {
        self.offset + device as f64 * self.tick_ns * (1.0 + self.drift)
    }

    fn sample(&self, device: u64, before: u64, after: u64) -> ClockSample {
        let host = self.host(device);
        let (before, after) = ((host - before as f64).floor(), (host + after as f64).ceil());
        ClockSample { before: Nanos(before as u64), device, after: Nanos(after as u64) }
    }
}

fn planted() -> impl Strategy<Value = Planted> {
    (0.5..100.0f64, -100e-6..100e-6f64, 1e9..1e12f64).prop_map(|(tick_ns, drift, offset)| Planted {
        tick_ns,
        drift,
        offset,
    })
}

fn off(clock: &DeviceClock, planted: &Planted, device: u64) -> f64 {
    (clock.to_host(device).0 as f64 - planted.host(device)).abs()
}

proptest! {
    #[test]
    fn the_error_bound_holds_at_every_time(
        planted in planted(),
        samples in prop::collection::vec((0..10_000_000_000u64, (100..50_000u64, 100..50_000u64)), 1..60),
        asked in prop::collection::vec(0..10_000_000_000u64, 1..20),
    ) {
        let samples: Vec<_> = samples.into_iter().map(|(d, (before, after))| planted.sample(d, before, after)).collect();
        let clock = DeviceClock::fit(planted.tick_ns, &samples).unwrap();
        for device in asked {
            let error = clock.error(device).as_nanos() as f64;
            prop_assert!(off(&clock, &planted, device) <= error + 2.0, "{clock:?}");
        }
        let tightest = samples.iter().min_by_key(|s| s.after.0 - s.before.0).unwrap();
        let half = (tightest.after - tightest.before).as_nanos() as f64 / 2.0;
        prop_assert!(off(&clock, &planted, tightest.device) <= half + 2.0);
        prop_assert!((clock.smallest_error().as_nanos() as f64 - half).abs() <= 1.0);
    }

    #[test]
    fn many_samples_determine_the_drift(planted in planted(), jitter in prop::collection::vec(0..2_000u64, 40)) {
        // Ten seconds, with round trips of 2 to 4 µs, either half of which may be the longer one.
        let second = (1e9 / planted.tick_ns) as u64;
        let samples: Vec<_> = jitter
            .iter()
            .enumerate()
            .map(|(n, j)| planted.sample(n as u64 * second / 4, 1_000 + j, 3_000 - j))
            .collect();
        let clock = DeviceClock::fit(planted.tick_ns, &samples).unwrap();
        prop_assert!((clock.drift() - planted.drift).abs() < 1e-6, "{clock:?}");
        for quarter in 0..40 {
            prop_assert!(off(&clock, &planted, quarter * second / 4) <= 8_000.0);
        }
    }
}

#[test]
fn with_samples_close_together_the_stated_tick_is_kept() {
    let planted = Planted { tick_ns: 1.0, drift: 20e-6, offset: 5e9 };
    // Within 10 µs, either half of the round trip may hide a drift of a tenth.
    let samples = [planted.sample(0, 1, 999), planted.sample(10_000, 999, 1)];
    let clock = DeviceClock::fit(1.0, &samples).unwrap();
    assert!(clock.drift().abs() <= 500e-6, "{clock:?}");
    assert!(off(&clock, &planted, 1_000_000_000) <= clock.error(1_000_000_000).as_nanos() as f64);
}

#[test]
fn a_wrongly_stated_tick_is_corrected() {
    let planted = Planted { tick_ns: 52.0, drift: 0.01, offset: 5e9 };
    let samples: Vec<_> = (0..10).map(|n| planted.sample(n * 1_000_000, 500, 500)).collect();
    let clock = DeviceClock::fit(52.0, &samples).unwrap();
    assert!((clock.drift() - 0.01).abs() < 1e-4, "{clock:?}");
    assert!(off(&clock, &planted, 5_000_000) <= clock.error(5_000_000).as_nanos() as f64);
}

#[test]
fn a_contradicting_sample_raises_the_error() {
    let planted = Planted { tick_ns: 1.0, drift: 50e-6, offset: 5e9 };
    let mut samples: Vec<_> =
        (0..20).map(|n| planted.sample(n * 100_000_000, 900, 1_000)).collect();
    samples[7].device += 3_000_000;
    let clock = DeviceClock::fit(1.0, &samples).unwrap();
    assert!(
        clock.error(0) >= Duration::from_millis(2),
        "the contradiction is in the error bound: {clock:?}"
    );
}

#[test]
fn unusable_samples_are_refused_with_the_reason() {
    let good = ClockSample { before: Nanos(5), device: 1, after: Nanos(9) };
    let bad = ClockSample { before: Nanos(9), device: 2, after: Nanos(5) };
    assert_eq!(DeviceClock::fit(1.0, &[]), Err(DeviceClockError::NoSample));
    assert_eq!(DeviceClock::fit(1.0, &[good, bad]), Err(DeviceClockError::Backwards { index: 1 }));
    for tick_ns in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(DeviceClock::fit(tick_ns, &[good]).is_err());
    }
    let clock = DeviceClock::fit(1.0, &[good, good]).unwrap();
    assert_eq!((clock.to_host(1), clock.to_host(101)), (Nanos(7), Nanos(107)));
    assert_eq!(clock.smallest_error(), Duration::from_nanos(2));
    assert_eq!(DeviceClock::fit(1.0, &[good]).unwrap().to_host(0), Nanos(6));
}
