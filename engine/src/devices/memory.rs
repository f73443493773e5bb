//! Memory of an emulated GPU's own.

use std::time::Duration;

use lapwing_kernels::device::DeviceKind;
use lapwing_plan::rate::Link;

use super::keys::{Key, number};
use super::text::{self, BYTES, RATE, TIME};
use super::{Backend, DeviceSpec, Pace, Rates};

/// Memory of an emulated GPU's own, and its link to that of the host. Values cross by transfers at the rate of the link, and what does
/// not fit into the memory cannot be placed on the device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OwnMemory {
    /// Bytes.
    pub bytes: u64,
    /// The link.
    pub link: Link,
}

impl Default for OwnMemory {
    /// A thousandth of that of a laptop's GPU: 8 GB behind PCIe 4.0 with 8 lanes.
    fn default() -> OwnMemory {
        OwnMemory { bytes: 8_000_000, link: Link::LAPTOP }
    }
}

/// A CPU and a GPU with memory of its own in a laptop's proportions, a thousandth as fast and as large.
pub(super) fn laptop() -> [DeviceSpec; 2] {
    let device =
        |name: &str, kind, rates| DeviceSpec::new(name, kind, Backend::Cpu, Pace::Throttled(rates));
    let cpu = device("cpu", DeviceKind::Cpu, Rates::LAPTOP_CPU);
    let gpu = device("gpu", DeviceKind::Gpu, Rates::LAPTOP_GPU);
    [cpu, DeviceSpec { memory: Some(OwnMemory::default()), ..gpu }]
}

fn can_have(spec: &DeviceSpec) -> bool {
    spec.is_throttled() && spec.kind == DeviceKind::Gpu
}

fn changed(spec: &mut DeviceSpec) -> &mut OwnMemory {
    spec.memory.get_or_insert_default()
}

/// Keys of memory of a device's own. Each of them gives it one.
pub(super) const MEMORY: &[Key] = &[
    Key {
        name: "memory",
        expected: BYTES,
        read: |spec, text| {
            changed(spec).bytes = text::bytes(text)?;
            Some(())
        },
        write: |spec| Some(text::write_bytes(spec.memory?.bytes)),
        of: can_have,
    },
    Key {
        name: "link",
        expected: RATE,
        read: |spec, text| {
            changed(spec).link.gbps = text::rate(text)?;
            Some(())
        },
        write: |spec| Some(number(spec.memory?.link.gbps)),
        of: can_have,
    },
    Key {
        name: "link-latency",
        expected: TIME,
        read: |spec, text| {
            changed(spec).link.latency = text::time(text)?;
            Some(())
        },
        write: |spec| Some(text::write_time(spec.memory?.link.latency)),
        of: can_have,
    },
];

impl DeviceSpec {
    /// The same device with memory of its own, for an emulated GPU.
    #[must_use]
    pub fn with_memory(mut self, bytes: u64, link_gbps: f64, latency: Duration) -> DeviceSpec {
        self.memory = Some(OwnMemory { bytes, link: Link { gbps: link_gbps, latency } });
        self
    }
}
