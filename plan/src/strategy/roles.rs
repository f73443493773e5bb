//! Roles of devices in a strategy.

use lapwing_kernels::device::{DeviceInfo, DeviceKind};

use crate::device::{DeviceId, needs_graphs};
use crate::error::PlanError;

/// The first usable device of each kind. A device that needs prepared graphs but has no graph sizes
/// is not usable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Roles {
    /// The CPU.
    pub(crate) cpu: Option<DeviceId>,
    /// The GPU.
    pub(crate) gpu: Option<DeviceId>,
    /// The NPU.
    pub(crate) npu: Option<DeviceId>,
}

impl Roles {
    pub(crate) fn of(devices: &[DeviceInfo]) -> Roles {
        Roles {
            cpu: Roles::first(devices, DeviceKind::Cpu),
            gpu: Roles::first(devices, DeviceKind::Gpu),
            npu: Roles::first(devices, DeviceKind::Npu),
        }
    }

    fn first(devices: &[DeviceInfo], kind: DeviceKind) -> Option<DeviceId> {
        let usable = |d: &DeviceInfo| d.kind == kind && !(needs_graphs(d) && d.sizes.is_empty());
        devices.iter().position(usable).map(DeviceId)
    }

    /// Runs the ops that the NPU does not: the GPU, or the CPU if there is no GPU.
    pub(crate) fn helper(&self) -> Option<DeviceId> {
        self.gpu.or(self.cpu)
    }

    /// Runs ops that need precision or have little parallelism: the CPU, or the GPU if there is no
    /// CPU.
    pub(crate) fn host(&self) -> Option<DeviceId> {
        self.cpu.or(self.gpu)
    }

    /// All of them, the fastest in prefill first: NPU, GPU, CPU.
    pub(crate) fn fastest_first(&self) -> Vec<DeviceId> {
        [self.npu, self.gpu, self.cpu].into_iter().flatten().collect()
    }
}

/// The devices that a strategy needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Needs<'a> {
    /// Name of the strategy.
    pub(crate) strategy: &'a str,
    /// The engine's devices.
    pub(crate) devices: &'a [DeviceInfo],
}

impl Needs<'_> {
    /// The error that no device of this kind exists.
    pub(crate) fn missing(&self, kind: DeviceKind) -> PlanError {
        let found = self.found();
        PlanError::Needs { strategy: self.strategy.to_owned(), kind, count: 1, found }
    }

    /// The error that there are no two kinds of usable devices.
    pub(crate) fn two_kinds(&self) -> PlanError {
        PlanError::NeedsTwoKinds { strategy: self.strategy.to_owned(), found: self.found() }
    }

    /// The engine's devices, as errors name them.
    fn found(&self) -> String {
        let name = |d: &DeviceInfo| format!("{} ({})", d.name, d.kind.name());
        let all: Vec<String> = self.devices.iter().map(name).collect();
        if all.is_empty() { "none".to_owned() } else { all.join(", ") }
    }

    /// The first usable device of a kind.
    pub(crate) fn first(&self, kind: DeviceKind) -> Result<DeviceId, PlanError> {
        Roles::first(self.devices, kind).ok_or_else(|| self.missing(kind))
    }

    /// The CPU.
    pub(crate) fn cpu(&self) -> Result<DeviceId, PlanError> {
        self.first(DeviceKind::Cpu)
    }

    /// The GPU.
    pub(crate) fn gpu(&self) -> Result<DeviceId, PlanError> {
        self.first(DeviceKind::Gpu)
    }

    /// The NPU.
    pub(crate) fn npu(&self) -> Result<DeviceId, PlanError> {
        self.first(DeviceKind::Npu)
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
