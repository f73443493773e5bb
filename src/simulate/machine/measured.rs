//! Rates that explain a profile.

use std::collections::BTreeMap;

use lapwing_actors::plan::soc::{Number, NumberKind};
use lapwing_kernels::quant::DType;

use super::{Machine, MachineDevice};
use crate::profile::{DeviceProfile, Profile, Sample};
use crate::simulate::SimulateError;

/// Rows from which a product counts as bound by arithmetic.
const MANY: usize = 64;

pub(super) fn machine(name: &str, profile: &Profile) -> Result<Machine, SimulateError> {
    let machine = &profile.machine;
    let origin = format!("profile of {} with {} on {}", profile.model, machine.isa, machine.cpu);
    let sync = profile.sync.median_ns as f64 / 1e3;
    Ok(Machine {
        name: name.to_owned(),
        about: origin.clone(),
        hand_over: pinned(sync.max(0.001), "us", &format!("{origin}: median hand-over")),
        copy: pinned(profile.copy_bytes_per_second / 1e9, "GB/s", &format!("{origin}: copies")),
        device: profile.devices.iter().map(|d| device(d, &origin)).collect::<Result<_, _>>()?,
    })
}

fn pinned(value: f64, unit: &str, source: &str) -> Number {
    let (unit, source) = (unit.to_owned(), source.to_owned());
    Number { value, unit, source, kind: NumberKind::Pinned }
}

fn device(profile: &DeviceProfile, origin: &str) -> Result<MachineDevice, SimulateError> {
    let products = || profile.samples.iter().filter(|sample| sample.shape.op == "matmul");
    let flops = |sample: &Sample| 2.0 * sample.shape.work(sample.m) / nanos(sample);
    let gflops = middle(products().filter(|s| s.m >= MANY).map(flops));
    let gbps = middle(products().filter(|s| s.m == 1).filter_map(|s| Some(bytes(s)? / nanos(s))));
    let (Some(gflops), Some(gbps)) = (gflops, gbps) else {
        return Err(SimulateError::Preset {
            reason: format!(
                "the profile of '{}' has no products of one row or of {MANY} rows and more: \
                 measure it again with `lapwing profile`",
                profile.name
            ),
        });
    };
    let numbers = [
        ("gflops", gflops, "GFLOP/s", format!("median over products of {MANY} rows and more")),
        ("gbps", gbps, "GB/s", "median over products of one row".to_owned()),
        ("submit", micros(profile.submit_queued_ns), "us", "submission behind work".to_owned()),
        ("idle-submit", micros(profile.submit_idle_ns), "us", "submission when idle".to_owned()),
        ("sync", micros(profile.crossing_ns), "us", "inputs of another device".to_owned()),
    ];
    let numbers: BTreeMap<String, Number> = numbers
        .into_iter()
        .map(|(key, value, unit, what)| {
            (key.to_owned(), pinned(value, unit, &format!("{origin}: {what}")))
        })
        .collect();
    let form = if profile.kind == "npu" { "systolic" } else { "throttled" };
    Ok(MachineDevice { spec: format!("{}={form}:kind={}", profile.name, profile.kind), numbers })
}

fn nanos(sample: &Sample) -> f64 {
    sample.time.median_ns.max(1) as f64
}

fn micros(nanos: u64) -> f64 {
    nanos as f64 / 1e3
}

/// Bytes of the weights of a product.
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
