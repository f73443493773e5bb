//! The content of a profile.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::shape::OpShape;

/// Version of the file format.
pub const VERSION: u32 = 2;

/// Measured times of every device of an engine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// Version of the file format; only [`VERSION`] is accepted.
    pub version: u32,
    /// Version of the program that measured the profile.
    pub program: String,
    /// Machine on which it was measured.
    pub machine: Machine,
    /// Model whose op shapes were measured.
    pub model: String,
    /// Maximum rows of a chunk, which is the maximum of the measured rows.
    pub chunk_rows: usize,
    /// Devices, indexed by [`DeviceId`](crate::DeviceId).
    pub devices: Vec<DeviceProfile>,
    /// T_sync: from the end of work on one device until another device starts on its result.
    pub sync: Spread,
    /// Bytes read and written per second when the parts of a divided stage are merged.
    pub copy_bytes_per_second: f64,
}

/// Identity of a machine. A profile is valid on this machine only.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// Name of the processor.
    pub cpu: String,
    /// Hardware threads.
    pub cores: usize,
    /// Instruction set that the kernels use.
    pub isa: String,
    /// Operating system.
    pub os: String,
}

/// Measured times of one device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeviceProfile {
    /// Name in the engine.
    pub name: String,
    /// Kind, as returned by `DeviceKind::name`.
    pub kind: String,
    /// Description beyond the name: threads, rates.
    pub description: String,
    /// Submission to an idle device, in ns.
    pub submit_idle_ns: u64,
    /// Submission to a busy device, in ns.
    pub submit_queued_ns: u64,
    /// Additional time of a job whose inputs come from another device, in ns.
    pub crossing_ns: u64,
    /// Time to copy values into and out of static graphs, in ns per byte read or written; 0 for a
    /// device without graphs.
    pub convert_ns_per_byte: f64,
    /// Times of graph preparation; empty for a device without graphs.
    pub prepares: Vec<PrepareSample>,
    /// Planned measurements. Those without a sample were skipped when the time limit was reached,
    /// the least important ones first.
    pub asked: usize,
    /// Times of ops, without submission and conversion.
    pub samples: Vec<Sample>,
}

/// Measured time to prepare a static graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PrepareSample {
    /// Rows of the graph.
    pub rows: u64,
    /// Number of weights of its matrices.
    pub weights: u64,
    /// Time, in ns.
    pub ns: u64,
}

/// Measured time of an op.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sample {
    /// Shape of the op.
    pub shape: OpShape,
    /// Rows.
    pub m: usize,
    /// Rows before them in the KV cache.
    pub context: usize,
    /// Time of the op.
    pub time: Spread,
}

/// Median and range of several runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spread {
    /// Median, in ns.
    pub median_ns: u64,
    /// Minimum, in ns.
    pub min_ns: u64,
    /// Maximum, in ns.
    pub max_ns: u64,
    /// Number of runs.
    pub runs: usize,
}

impl Spread {
    /// Median and range of these times; `None` if there are none.
    pub fn of(times: &[Duration]) -> Option<Spread> {
        let mut sorted: Vec<u64> = times.iter().map(|t| nanos(*t)).collect();
        sorted.sort_unstable();
        let (min_ns, max_ns) = (*sorted.first()?, *sorted.last()?);
        Some(Spread { median_ns: sorted[sorted.len() / 2], min_ns, max_ns, runs: sorted.len() })
    }

    /// Median.
    pub fn median(&self) -> Duration {
        Duration::from_nanos(self.median_ns)
    }

    /// (max − min) / median.
    pub fn relative(&self) -> f64 {
        (self.max_ns - self.min_ns) as f64 / self.median_ns.max(1) as f64
    }
}

/// A duration in whole nanoseconds, saturating.
pub fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
