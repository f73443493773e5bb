//! Checks that the values of a profile are in range.

use std::ops::RangeInclusive;

use lapwing_kernels::device::DeviceKind;

use super::data::{DeviceProfile, PrepareSample, Profile, Sample, Spread};
use super::error::ProfileError;

/// Valid copy rates, in bytes per second: 1 kB/s to 1 PB/s.
const RATES: RangeInclusive<f64> = 1e3..=1e15;
/// Maximum rows, channels or context.
const LEN_MAX: usize = 1 << 24;
/// Maximum weights of a graph.
const WEIGHTS_MAX: u64 = 1 << 48;
/// Maximum time: one hour, in ns.
const NS_MAX: u64 = 3_600_000_000_000;

/// An error that names the field, unless the condition holds.
fn expect(
    holds: bool,
    field: impl FnOnce() -> String,
    found: &dyn ToString,
    expected: &'static str,
) -> Result<(), ProfileError> {
    let value =
        || ProfileError::Value { file: None, field: field(), found: found.to_string(), expected };
    if holds { Ok(()) } else { Err(value()) }
}

fn time(field: impl FnOnce() -> String, ns: u64) -> Result<(), ProfileError> {
    expect(ns <= NS_MAX, field, &ns, "must be at most one hour")
}

impl Profile {
    /// Checks every value that a prediction uses.
    ///
    /// # Errors
    /// [`ProfileError::Value`] names the field.
    pub fn check(&self) -> Result<(), ProfileError> {
        let rate = self.copy_bytes_per_second;
        let expected = "must be 1e3 to 1e15 bytes per second";
        expect(RATES.contains(&rate), || "copy_bytes_per_second".to_owned(), &rate, expected)?;
        let Spread { median_ns, min_ns, max_ns, .. } = self.sync;
        for (name, ns) in [("median_ns", median_ns), ("min_ns", min_ns), ("max_ns", max_ns)] {
            time(|| format!("sync.{name}"), ns)?;
        }
        self.devices.iter().enumerate().try_for_each(|(d, device)| check_device(d, device))
    }
}

fn check_device(d: usize, device: &DeviceProfile) -> Result<(), ProfileError> {
    let field = |name: &str| format!("devices[{d}].{name}");
    let is_known = DeviceKind::by_name(&device.kind).is_some();
    expect(is_known, || field("kind"), &device.kind, "must be cpu, gpu or npu")?;
    for (name, ns) in [
        ("submit_idle_ns", device.submit_idle_ns),
        ("submit_queued_ns", device.submit_queued_ns),
        ("crossing_ns", device.crossing_ns),
    ] {
        time(|| field(name), ns)?;
    }
    let convert = device.convert_ns_per_byte;
    let expected = "must be 0 to 1e6 ns per byte";
    let holds = (0.0..=1e6).contains(&convert);
    expect(holds, || field("convert_ns_per_byte"), &convert, expected)?;
    for (p, sample) in device.prepares.iter().enumerate() {
        let field = |name: &str| field(&format!("prepares[{p}].{name}"));
        let PrepareSample { rows, weights, ns } = *sample;
        let expected = "must be 1 to 2^24 rows";
        expect((1..=LEN_MAX as u64).contains(&rows), || field("rows"), &rows, expected)?;
        expect(
            weights <= WEIGHTS_MAX,
            || field("weights"),
            &weights,
            "must be at most 2^48 weights",
        )?;
        time(|| field("ns"), ns)?;
    }
    let expected = "must hold at least one measured op";
    expect(!device.samples.is_empty(), || field("samples"), &"empty", expected)?;
    let expected = "must be at least the number of samples";
    expect(device.asked >= device.samples.len(), || field("asked"), &device.asked, expected)?;
    device.samples.iter().enumerate().try_for_each(|(s, sample)| {
        check_sample(|name| field(&format!("samples[{s}].{name}")), sample)
    })
}

fn check_sample(field: impl Fn(&str) -> String, sample: &Sample) -> Result<(), ProfileError> {
    let Sample { shape, m, context, time: spread } = sample;
    let lengths =
        [("m", *m, 1), ("shape.n", shape.n, 1), ("shape.k", shape.k, 0), ("context", *context, 0)];
    for (name, len, least) in lengths {
        let expected = "must be at most 2^24, and not 0 for rows and output channels";
        expect((least..=LEN_MAX).contains(&len), || field(name), &len, expected)?;
    }
    time(|| field("time.max_ns"), spread.max_ns)?;
    let is_median = (spread.min_ns..=spread.max_ns).contains(&spread.median_ns);
    let expected = "must have at least one run and min_ns ≤ median_ns ≤ max_ns";
    expect(is_median && spread.runs > 0, || field("time"), &format!("{spread:?}"), expected)
}
