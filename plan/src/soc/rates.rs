//! What a system's models of time are asked about.

use std::sync::Arc;
use std::time::Duration;

use lapwing_kernels::device::{DeviceInfo, DeviceKind};
use lapwing_kernels::graph::Graph;

use super::times::Shared;
use super::{CpuTimes, GpuTimes, NpuTimes, Soc};
use crate::cost::Modelled;
use crate::time::TimeModel;

/// How processors hand over to each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SyncMode {
    /// A flag beside the values that is waited for and polled; the next kernel is queued before
    /// (S2-34 to S2-36).
    #[default]
    Fast,
    /// The queue is finished, so that it is empty afterwards (S2-12, S2-13).
    Slow,
}

/// How many bits a weight takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum WeightBits {
    /// So many, whatever the format in the graph.
    Fixed(f64),
    /// Those of the graph's formats.
    Stored,
}

impl Default for WeightBits {
    /// 4.0: W4A16 (device model, 2).
    fn default() -> WeightBits {
        WeightBits::Fixed(4.0)
    }
}

/// What runs on a system.
#[derive(Clone, Debug)]
pub struct Workload {
    /// The model's ops.
    pub graph: Arc<Graph>,
    /// Size of its weights in memory.
    pub bits: WeightBits,
}

impl Soc {
    /// Row counts for which the NPU has graphs: that of decoding (S2-32) and the customary ones
    /// (S2-47).
    pub const NPU_SIZES: [usize; 7] = [1, 32, 64, 128, 256, 512, 1024];

    /// What a planner has to know of processors of these kinds.
    pub fn devices(kinds: &[DeviceKind]) -> Vec<DeviceInfo> {
        let info = |kind: &DeviceKind| {
            let mut sizes = Vec::new();
            if *kind == DeviceKind::Npu {
                sizes.extend(Soc::NPU_SIZES);
            }
            DeviceInfo::new(kind.name(), *kind).with_graphs(sizes, None)
        };
        kinds.iter().map(info).collect()
    }

    /// How long processors of these kinds take for a workload.
    pub fn times(
        &self,
        kinds: &[DeviceKind],
        workload: &Workload,
        sync: SyncMode,
    ) -> Vec<Arc<dyn TimeModel>> {
        let shared = Arc::new(Shared::new(self, workload, sync));
        let time = |kind: &DeviceKind| -> Arc<dyn TimeModel> {
            let shared = Arc::clone(&shared);
            match kind {
                DeviceKind::Gpu => Arc::new(GpuTimes::new(self, shared)),
                DeviceKind::Npu => Arc::new(NpuTimes::new(self, shared)),
                DeviceKind::Cpu => Arc::new(CpuTimes::new(self, shared)),
            }
        };
        kinds.iter().map(time).collect()
    }

    /// The cost model that strategies ask: the same models that drive the processors.
    pub fn cost(&self, kinds: &[DeviceKind], workload: &Workload, sync: SyncMode) -> Modelled {
        let devices = self.times(kinds, workload, sync);
        Modelled { devices, sync: Duration::ZERO, copy_rate: self.copy_rate() }
    }

    /// Bytes per second at which parts are put together, as the runtime counts bytes: values of
    /// four bytes, where the system has two.
    pub fn copy_rate(&self) -> f64 {
        2.0 * self.of("memory.copy") * 1e9
    }

    /// A time that is given in microseconds.
    pub fn micros(&self, path: &str) -> Duration {
        micros(self.of(path))
    }

    /// A time that is given in milliseconds.
    pub fn millis(&self, path: &str) -> Duration {
        micros(self.of(path) * 1e3)
    }

    /// A number that is known to be there.
    pub fn at(&self, path: &str) -> f64 {
        self.of(path)
    }
}

/// A number of microseconds as a time in whole nanoseconds.
pub(super) fn micros(value: f64) -> Duration {
    Duration::from_nanos((value * 1e3).round() as u64)
}
