//! Devices, time models and cost model of a system.

use std::sync::Arc;
use std::time::Duration;

use lapwing_kernels::device::{DeviceInfo, DeviceKind};

use super::cpu::CpuTimes;
use super::description::Soc;
use super::gpu::GpuTimes;
use super::npu::NpuTimes;
use super::times::Shared;
use super::workload::{SyncMode, Workload};
use crate::cost::Modelled;
use crate::time::TimeModel;

impl Soc {
    /// Graph sizes of the NPU, in rows: one row for decode, and the standard sizes of HeteroLLM
    /// (arXiv 2501.14794), powers of two from 32 to 1024.
    pub const NPU_SIZES: [usize; 7] = [1, 32, 64, 128, 256, 512, 1024];

    /// The kinds of its processors.
    pub const KINDS: [DeviceKind; 3] = [DeviceKind::Gpu, DeviceKind::Npu, DeviceKind::Cpu];

    /// One device of each of these kinds, as planners see it. Kinds other than [`KINDS`](Soc::KINDS) are left
    /// out, here and in [`times`](Soc::times) and [`cost`](Soc::cost).
    pub fn devices(kinds: &[DeviceKind]) -> Vec<DeviceInfo> {
        let info = |kind: &DeviceKind| {
            let info = DeviceInfo::new(kind.name(), *kind);
            match info.is_static() {
                true => info.with_graphs(Soc::NPU_SIZES.to_vec(), None),
                false => info,
            }
        };
        kinds.iter().filter(|kind| Soc::KINDS.contains(kind)).map(info).collect()
    }

    /// The time model of each of these devices for a workload.
    pub fn times(
        &self,
        kinds: &[DeviceKind],
        workload: &Workload,
        sync: SyncMode,
    ) -> Vec<Arc<dyn TimeModel>> {
        let shared = Arc::new(Shared::new(self, workload, sync));
        let time = |kind: &DeviceKind| -> Option<Arc<dyn TimeModel>> {
            let shared = Arc::clone(&shared);
            Some(match kind {
                DeviceKind::Gpu => Arc::new(GpuTimes::new(self, shared)),
                DeviceKind::Npu => Arc::new(NpuTimes::new(self, shared)),
                DeviceKind::Cpu => Arc::new(CpuTimes::new(self, shared)),
                DeviceKind::Own(_) => return None,
            })
        };
        kinds.iter().filter_map(time).collect()
    }

    /// The cost model of strategies, made of the time models that also drive the devices.
    pub fn cost(&self, kinds: &[DeviceKind], workload: &Workload, sync: SyncMode) -> Modelled {
        let devices = self.times(kinds, workload, sync);
        Modelled { devices, sync: Duration::ZERO, copy_rate: self.copy_rate() }
    }
}
