//! Values that a prediction can start from.

use std::ops::RangeInclusive;

use lapwing_kernels::device::DeviceKind;

use super::{DeviceProfile, PrepareSample, Profile, ProfileError, Sample, Spread};

/// Bytes per second that a copy may have: a thousand bytes to a million gigabytes.
const RATES: RangeInclusive<f64> = 1e3..=1e15;
/// Most rows, features or rows before a chunk.
const LEN_MAX: usize = 1 << 24;
/// Most weights of a graph.
const WEIGHTS_MAX: u64 = 1 << 48;
/// Longest time: an hour.
const NS_MAX: u64 = 3_600_000_000_000;

/// Passes what is so; else the field is named.
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
    expect(ns <= NS_MAX, field, &ns, "a time is at most an hour")
}

impl Profile {
    /// Checks every value that a prediction divides by or starts from.
    ///
    /// # Errors
    /// [`ProfileError::Value`] that names the field.
    pub fn check(&self) -> Result<(), ProfileError> {
        let rate = self.copy_bytes_per_second;
        let expected = "a copy moves 1e3 to 1e15 bytes per second";
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
    let known = [DeviceKind::Cpu, DeviceKind::Gpu, DeviceKind::Npu].map(DeviceKind::name);
    let is_known = known.contains(&device.kind.as_str());
    expect(is_known, || field("kind"), &device.kind, "a device is a cpu, gpu or npu")?;
    for (name, ns) in [
        ("submit_idle_ns", device.submit_idle_ns),
        ("submit_queued_ns", device.submit_queued_ns),
        ("crossing_ns", device.crossing_ns),
    ] {
        time(|| field(name), ns)?;
    }
    let convert = device.convert_ns_per_byte;
    let expected = "a byte takes 0 to 1e6 ns";
    let holds = (0.0..=1e6).contains(&convert);
    expect(holds, || field("convert_ns_per_byte"), &convert, expected)?;
    for (p, sample) in device.prepares.iter().enumerate() {
        let field = |name: &str| field(&format!("prepares[{p}].{name}"));
        let PrepareSample { rows, weights, ns } = *sample;
        let expected = "a graph has 1 to 2^24 rows";
        expect((1..=LEN_MAX as u64).contains(&rows), || field("rows"), &rows, expected)?;
        expect(weights <= WEIGHTS_MAX, || field("weights"), &weights, "at most 2^48 weights")?;
        time(|| field("ns"), ns)?;
    }
    let expected = "at least one op must have been measured";
    expect(!device.samples.is_empty(), || field("samples"), &"empty", expected)?;
    let expected = "all samples were asked for";
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
        let expected = "an op has rows and features, and at most 2^24 of either";
        expect((least..=LEN_MAX).contains(&len), || field(name), &len, expected)?;
    }
    time(|| field("time.max_ns"), spread.max_ns)?;
    let is_median = (spread.min_ns..=spread.max_ns).contains(&spread.median_ns);
    let expected = "a median lies between two extremes";
    expect(is_median && spread.runs > 0, || field("time"), &format!("{spread:?}"), expected)
}
