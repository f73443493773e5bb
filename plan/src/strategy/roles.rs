//! Which device plays which part in a strategy.

use lapwing_kernels::device::{DeviceInfo, DeviceKind};

use crate::{DeviceId, PlanError};

/// The first device of each kind. An NPU for which no graph can be prepared does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Roles {
    /// CPU.
    pub(crate) cpu: Option<DeviceId>,
    /// GPU.
    pub(crate) gpu: Option<DeviceId>,
    /// NPU.
    pub(crate) npu: Option<DeviceId>,
}

impl Roles {
    pub(crate) fn of(devices: &[DeviceInfo]) -> Roles {
        let first = |kind| {
            let usable =
                |d: &DeviceInfo| d.kind == kind && (kind != DeviceKind::Npu || !d.sizes.is_empty());
            devices.iter().position(usable).map(DeviceId)
        };
        Roles {
            cpu: first(DeviceKind::Cpu),
            gpu: first(DeviceKind::Gpu),
            npu: first(DeviceKind::Npu),
        }
    }

    /// What runs beside the NPU whatever that cannot: the GPU, without one the CPU.
    pub(crate) fn helper(&self) -> Option<DeviceId> {
        self.gpu.or(self.cpu)
    }

    /// What runs what must be precise or has no parallel work: the CPU, without one the GPU.
    pub(crate) fn host(&self) -> Option<DeviceId> {
        self.cpu.or(self.gpu)
    }

    /// All of them, the fastest in prefill first: NPU, GPU, CPU.
    pub(crate) fn fastest_first(&self) -> Vec<DeviceId> {
        [self.npu, self.gpu, self.cpu].into_iter().flatten().collect()
    }
}

/// A strategy's need of devices.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Needs<'a> {
    /// Name of the strategy.
    pub(crate) strategy: &'a str,
    /// The engine's devices.
    pub(crate) devices: &'a [DeviceInfo],
}

impl Needs<'_> {
    /// There is no device of that kind.
    pub(crate) fn missing(&self, kind: DeviceKind) -> PlanError {
        let name = |d: &DeviceInfo| format!("{} ({})", d.name, d.kind.name());
        let all: Vec<String> = self.devices.iter().map(name).collect();
        let found = if all.is_empty() { "none".to_owned() } else { all.join(", ") };
        PlanError::Needs { strategy: self.strategy.to_owned(), kind, count: 1, found }
    }

    /// The CPU.
    pub(crate) fn cpu(&self) -> Result<DeviceId, PlanError> {
        Roles::of(self.devices).cpu.ok_or_else(|| self.missing(DeviceKind::Cpu))
    }

    /// The GPU.
    pub(crate) fn gpu(&self) -> Result<DeviceId, PlanError> {
        Roles::of(self.devices).gpu.ok_or_else(|| self.missing(DeviceKind::Gpu))
    }

    /// The NPU.
    pub(crate) fn npu(&self) -> Result<DeviceId, PlanError> {
        Roles::of(self.devices).npu.ok_or_else(|| self.missing(DeviceKind::Npu))
    }

    /// The NPU's helper.
    pub(crate) fn helper(&self) -> Result<DeviceId, PlanError> {
        Roles::of(self.devices).helper().ok_or_else(|| self.missing(DeviceKind::Gpu))
    }

    /// The host.
    pub(crate) fn host(&self) -> Result<DeviceId, PlanError> {
        Roles::of(self.devices).host().ok_or_else(|| self.missing(DeviceKind::Cpu))
    }
}
