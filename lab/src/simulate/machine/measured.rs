//! Derives the rates that best explain a profile.

use std::collections::BTreeMap;

use lapwing_kernels::device::DeviceKind;
use lapwing_kernels::formats::DType;
use lapwing_kernels::part::OperandOrder;
use lapwing_plan::array::SystolicArray;
use lapwing_plan::profile::PrepareSample;
use lapwing_plan::soc::{Number, NumberKind};

use super::numbers::{self, NUMBERS};
use super::{Machine, MachineDevice};
use crate::simulate::error::SimulateError;
use lapwing_engine::devices::{Backend, DeviceSpec};
use lapwing_engine::profile::{DeviceProfile, Profile, Sample};

/// Rows from which a matmul counts as compute-bound.
const MANY: usize = 64;

pub(super) fn machine(name: &str, profile: &Profile) -> Result<Machine, SimulateError> {
    let machine = &profile.machine;
    let origin = format!("profile of {} with {} on {}", profile.model, machine.isa, machine.cpu);
    let sync = profile.sync.median_ns as f64 / 1e3;
    Ok(Machine {
        name: name.to_owned(),
        about: origin.clone(),
        hand_over: pinned(sync.max(0.001), "us", &format!("{origin}: median synchronisation")),
        copy: pinned(profile.copy_bytes_per_second / 1e9, "GB/s", &format!("{origin}: copies")),
        shared_memory: None,
        device: profile.devices.iter().map(|d| device(d, &origin)).collect::<Result<_, _>>()?,
    })
}

fn pinned(value: f64, unit: &str, source: &str) -> Number {
    let (unit, source) = (unit.to_owned(), source.to_owned());
    Number { value, unit, source, kind: NumberKind::Pinned }
}

fn device(profile: &DeviceProfile, origin: &str) -> Result<MachineDevice, SimulateError> {
    let (spec, described) = form(profile);
    let mut measured = rates(profile, &spec)?;
    measured.extend(preparation(&profile.prepares));
    let number = |known: &numbers::Known| {
        let key = known.key.to_owned();
        let value = (known.of)(&spec)?;
        if let Some((_, value, what)) = measured.iter().find(|(key, ..)| *key == known.key) {
            return Some((key, pinned(*value, known.unit, &format!("{origin}: {what}"))));
        }
        let (kind, source) = match described {
            true => (NumberKind::Derived, "the settings of the measured device"),
            false => (NumberKind::Assumed, "a default: the profile does not say it"),
        };
        let (unit, source) = (known.unit.to_owned(), source.to_owned());
        Some((key, Number { value, unit, source, kind }))
    };
    let numbers: BTreeMap<String, Number> = NUMBERS.iter().filter_map(number).collect();
    Ok(MachineDevice { spec: numbers::without(&spec), numbers })
}

/// The measured device, with defaults for the numbers that are not measured, and whether the
/// profile describes them.
fn form(profile: &DeviceProfile) -> (DeviceSpec, bool) {
    let text = profile.description.rsplit_once(" on ").map_or("", |(spec, _)| spec);
    let described: Option<DeviceSpec> = text.parse().ok();
    let kind = DeviceKind::by_name(&profile.kind).unwrap_or(DeviceKind::Cpu);
    match described {
        Some(described) if described.kind == kind && described.is_throttled() => (described, true),
        described => {
            let name = &profile.name;
            let mut spec = match kind {
                DeviceKind::Npu => DeviceSpec::systolic(name),
                kind => DeviceSpec::throttled(name, kind),
            };
            spec.threads = described.and_then(|described| described.threads);
            (spec, false)
        }
    }
}

/// A number's key and value, and the measurement behind it.
type Rated = (&'static str, f64, String);

fn rates(profile: &DeviceProfile, spec: &DeviceSpec) -> Result<Vec<Rated>, SimulateError> {
    let products = || profile.samples.iter().filter(|sample| sample.shape.op == "matmul");
    let gflops = middle(products().filter(|s| s.m >= MANY).map(|s| rate_of(s, spec)));
    let one = || middle(products().filter(|s| s.m == 1).filter_map(|s| Some(bytes(s)? / nanos(s))));
    let loads = Some(profile.convert_ns_per_byte).filter(|ns| *ns > 0.0).map(|ns| 1.0 / ns);
    let gbps = match loads {
        Some(gbps) => Some((gbps, "loads and stores of static graphs")),
        None => one().map(|gbps| (gbps, "median over matmuls of one row")),
    };
    let (Some(gflops), Some((gbps, what))) = (gflops, gbps) else {
        return Err(SimulateError::Preset {
            reason: format!(
                "the profile of '{}' has no matmuls of one row or none of at least {MANY} rows: measure it \
                 again with `lapwing profile`",
                profile.name
            ),
        });
    };
    Ok(vec![
        ("gflops", gflops, format!("median over matmuls of at least {MANY} rows")),
        ("gbps", gbps, what.to_owned()),
        ("submit", micros(profile.submit_queued_ns), "submission behind running work".to_owned()),
        ("idle-submit", micros(profile.submit_idle_ns), "submission when idle".to_owned()),
        ("sync", micros(profile.crossing_ns), "inputs of another device".to_owned()),
    ])
}

/// The rate in GFLOP/s with which the device's model takes the measured time.
fn rate_of(sample: &Sample, spec: &DeviceSpec) -> f64 {
    let Backend::Systolic(settings) = &spec.backend else {
        return 2.0 * sample.shape.work(sample.m) / nanos(sample);
    };
    let array = SystolicArray { size: settings.array, flops: 1e9, ratio_floor: settings.floor };
    let order = if sample.shape.swapped { OperandOrder::Swapped } else { OperandOrder::Straight };
    let shape = [sample.m, sample.shape.k, sample.shape.n];
    array.matmul_time(shape, order).as_secs_f64() * 1e9 / nanos(sample)
}

/// Fits time = fixed + slope · (rows · weights) by least squares, with neither below zero.
fn preparation(samples: &[PrepareSample]) -> Vec<Rated> {
    if samples.is_empty() {
        return Vec::new();
    }
    let count = samples.len() as f64;
    let points = || samples.iter().map(|s| (s.rows as f64 * s.weights as f64, s.ns as f64));
    let mean = |of: fn((f64, f64)) -> f64| points().map(of).sum::<f64>() / count;
    let (x, y) = (mean(|p| p.0), mean(|p| p.1));
    let spread: f64 = points().map(|p| (p.0 - x).powi(2)).sum();
    let both: f64 = points().map(|p| (p.0 - x) * (p.1 - y)).sum();
    let slope = if spread > 0.0 { (both / spread).max(0.0) } else { 0.0 };
    let (fixed, slope) = match y - slope * x {
        fixed if fixed >= 0.0 => (fixed, slope),
        // A line through the origin.
        _ => (
            0.0,
            points().map(|p| p.0 * p.1).sum::<f64>() / points().map(|p| p.0 * p.0).sum::<f64>(),
        ),
    };
    let what = format!("least squares over {count} preparations");
    // Nanoseconds to µs, and to µs of 10⁹ row-weights.
    vec![("prepare", fixed / 1e3, what.clone()), ("prepare-gweight", slope * 1e6, what)]
}

fn nanos(sample: &Sample) -> f64 {
    sample.time.median_ns.max(1) as f64
}

fn micros(nanos: u64) -> f64 {
    nanos as f64 / 1e3
}

/// Bytes of a matmul's weights.
fn bytes(sample: &Sample) -> Option<f64> {
    let name = sample.shape.dtype.as_ref()?;
    let dtype = DType::ALL.into_iter().find(|dtype| dtype.to_string() == *name)?;
    let each = dtype.block_bytes() as f64 / dtype.block_len() as f64;
    Some(sample.shape.work(1) * each)
}

fn middle(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut sorted: Vec<f64> = values.filter(|v| v.is_finite() && *v > 0.0).collect();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_preparation_time_is_recovered_from_measurements() {
        let of = |samples: &[(u64, u64, u64)]| {
            let sample =
                |&(rows, weights, ns): &(u64, u64, u64)| PrepareSample { rows, weights, ns };
            let samples: Vec<PrepareSample> = samples.iter().map(sample).collect();
            preparation(&samples).iter().map(|(_, value, _)| *value).collect::<Vec<f64>>()
        };
        // 2 ms, and 90 ms for 10⁹ row-weights.
        let exact = of(&[(32, 1_000_000, 4_880_000), (64, 1_000_000, 7_760_000)]);
        assert!(
            (exact[0] - 2000.0).abs() < 1e-6 && (exact[1] - 90_000.0).abs() < 1e-3,
            "{exact:?}"
        );
        assert_eq!(of(&[(32, 10, 5000)]), [5.0, 0.0]);
        let through_zero = of(&[(1, 1000, 100), (1, 2000, 2000)]);
        assert!(through_zero[0] == 0.0 && through_zero[1] > 0.0, "{through_zero:?}");
        assert!(of(&[]).is_empty());
    }
}
