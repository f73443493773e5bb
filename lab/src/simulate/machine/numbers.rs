//! The numbers that describe a device.

use std::time::Duration;

use lapwing_engine::devices::{ArraySettings, DeviceSpec, OwnMemory, Rates};

/// The number that says that a device has memory of its own.
pub(super) const MEMORY: &str = "memory";

/// A number: its key and unit, and its place in a device.
pub(super) struct Known {
    pub(super) key: &'static str,
    pub(super) unit: &'static str,
    pub(super) of: fn(&DeviceSpec) -> Option<f64>,
    pub(super) set: fn(&mut DeviceSpec, f64),
}

fn with_rates(spec: &mut DeviceSpec, change: impl FnOnce(&mut Rates)) {
    if let Some(rates) = spec.rates_mut() {
        change(rates);
    }
}

fn with_array(spec: &mut DeviceSpec, change: impl FnOnce(&mut ArraySettings)) {
    if let Some(array) = spec.array_mut() {
        change(array);
    }
}

fn with_memory(spec: &mut DeviceSpec, change: impl FnOnce(&mut OwnMemory)) {
    if let Some(memory) = &mut spec.memory {
        change(memory);
    }
}

fn micros(time: Duration) -> f64 {
    time.as_nanos() as f64 / 1e3
}

fn time(micros: f64) -> Duration {
    Duration::from_nanos((micros * 1e3).round() as u64)
}

/// The device as text, without its numbers.
pub(super) fn without(spec: &DeviceSpec) -> String {
    let text = spec.to_string();
    let Some((form, pairs)) = text.split_once(':') else { return text };
    let is_number = |pair: &&str| {
        let key = pair.split('=').next().unwrap_or_default();
        NUMBERS.iter().any(|known| known.key == key)
    };
    let rest: Vec<&str> = pairs.split(',').filter(|pair| !is_number(pair)).collect();
    if rest.is_empty() { form.to_owned() } else { format!("{form}:{}", rest.join(",")) }
}

pub(super) const NUMBERS: [Known; 12] = [
    Known {
        key: "gflops",
        unit: "GFLOP/s",
        of: |spec| Some(spec.rates()?.gflops),
        set: |spec, value| with_rates(spec, |rates| rates.gflops = value),
    },
    Known {
        key: "gbps",
        unit: "GB/s",
        of: |spec| Some(spec.rates()?.gbps),
        set: |spec, value| with_rates(spec, |rates| rates.gbps = value),
    },
    Known {
        key: "submit",
        unit: "us",
        of: |spec| Some(micros(spec.rates()?.submit_queued)),
        set: |spec, value| with_rates(spec, |rates| rates.submit_queued = time(value)),
    },
    Known {
        key: "idle-submit",
        unit: "us",
        of: |spec| Some(micros(spec.rates()?.submit_idle)),
        set: |spec, value| with_rates(spec, |rates| rates.submit_idle = time(value)),
    },
    Known {
        key: "sync",
        unit: "us",
        of: |spec| Some(micros(spec.rates()?.sync)),
        set: |spec, value| with_rates(spec, |rates| rates.sync = time(value)),
    },
    Known {
        key: MEMORY,
        unit: "GB",
        of: |spec| Some(spec.memory?.bytes as f64 / 1e9),
        set: |spec, value| with_memory(spec, |memory| memory.bytes = (value * 1e9).round() as u64),
    },
    Known {
        key: "link",
        unit: "GB/s",
        of: |spec| Some(spec.memory?.link.gbps),
        set: |spec, value| with_memory(spec, |memory| memory.link.gbps = value),
    },
    Known {
        key: "link-latency",
        unit: "us",
        of: |spec| Some(micros(spec.memory?.link.latency)),
        set: |spec, value| with_memory(spec, |memory| memory.link.latency = time(value)),
    },
    Known {
        key: "array",
        unit: "cells",
        of: |spec| Some(spec.array()?.array as f64),
        set: |spec, value| with_array(spec, |array| array.array = value.round() as usize),
    },
    Known {
        key: "floor",
        unit: "1",
        of: |spec| Some(spec.array()?.floor),
        set: |spec, value| with_array(spec, |array| array.floor = value),
    },
    Known {
        key: "prepare",
        unit: "us",
        of: |spec| Some(micros(spec.array()?.prepare)),
        set: |spec, value| with_array(spec, |array| array.prepare = time(value)),
    },
    Known {
        key: "prepare-gweight",
        unit: "us",
        of: |spec| Some(micros(spec.array()?.prepare_gweight)),
        set: |spec, value| with_array(spec, |array| array.prepare_gweight = time(value)),
    },
];
