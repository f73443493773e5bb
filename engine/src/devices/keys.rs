//! Keys of devices as text, and those that several back ends have.

use lapwing_kernels::cpu::THREADS_MAX;

use super::DeviceSpec;
use super::text::{self, BYTES, RATE, SIZES, TIME};

/// A key: how its value is read and written, and which devices of a back end have it.
pub(super) struct Key {
    pub(super) name: &'static str,
    pub(super) expected: &'static str,
    pub(super) read: fn(&mut DeviceSpec, &str) -> Option<()>,
    /// `None` if the device has no such value.
    pub(super) write: fn(&DeviceSpec) -> Option<String>,
    /// Whether a device has this key.
    pub(super) of: fn(&DeviceSpec) -> bool,
}

fn has_rates(spec: &DeviceSpec) -> bool {
    spec.rates().is_some()
}

fn has_graphs(spec: &DeviceSpec) -> bool {
    spec.is_static()
}

macro_rules! rate_key {
    ($name:literal, $field:ident, $read:path, $write:expr, $expected:expr) => {
        Key {
            name: $name,
            expected: $expected,
            read: |spec, text| {
                spec.rates_mut()?.$field = $read(text)?;
                Some(())
            },
            write: |spec| Some($write(spec.rates()?.$field)),
            of: has_rates,
        }
    };
}

pub(super) fn number(value: f64) -> String {
    value.to_string()
}

pub(super) const THREADS: &[Key] = &[Key {
    name: "threads",
    expected: "a number of threads, at least 1",
    read: |spec, text| {
        let threads = text.parse().ok().filter(|n| (1..=THREADS_MAX).contains(n));
        spec.threads = Some(threads?);
        Some(())
    },
    write: |spec| spec.threads.map(|threads| threads.to_string()),
    of: |_| true,
}];

/// Keys of throttled devices.
pub(super) const RATES: &[Key] = &[
    rate_key!("gflops", gflops, text::rate, number, RATE),
    rate_key!("gbps", gbps, text::rate, number, RATE),
    rate_key!("submit", submit_queued, text::time, text::write_time, TIME),
    rate_key!("idle-submit", submit_idle, text::time, text::write_time, TIME),
    rate_key!("sync", sync, text::time, text::write_time, TIME),
];

/// Keys of devices that run only prepared graphs.
pub(super) const GRAPHS: &[Key] = &[
    Key {
        name: "sizes",
        expected: SIZES,
        read: |spec, text| {
            spec.graphs.sizes = text::sizes(text)?;
            Some(())
        },
        write: |spec| Some(text::write_sizes(&spec.graphs.sizes)),
        of: has_graphs,
    },
    Key {
        name: "budget",
        expected: BYTES,
        read: |spec, text| {
            spec.graphs.budget = text::bytes(text)?;
            Some(())
        },
        write: |spec| Some(text::write_bytes(spec.graphs.budget)),
        of: has_graphs,
    },
];
