//! Properties of a device that its back end and its pace determine: rates, threads, memory and drivers.

use super::back_end::ThreadUse;
use super::{DeviceSpec, DeviceSpecError, Pace, Rates};
use crate::drivers::DriverKind;

impl DeviceSpec {
    /// Checks that kind, back end and pace fit each other. Text only describes devices that pass.
    pub fn check(&self) -> Result<(), DeviceSpecError> {
        self.backend.get().check(self).map_err(|reason| DeviceSpecError::Combination {
            name: self.name.clone(),
            kind: self.kind,
            reason,
        })
    }

    /// Whether it runs prepared graphs only, as
    /// [`DeviceInfo::is_static`](lapwing_kernels::device::DeviceInfo::is_static) says of the device.
    pub fn is_static(&self) -> bool {
        self.backend.get().info(self).is_static()
    }

    /// Whether the CPU kernels compute for it, on threads of the engine.
    pub(crate) fn has_threads(&self) -> bool {
        self.backend.get().threads() == ThreadUse::Engine
    }

    /// Whether all its results have the same bits as those of the CPU kernels.
    pub fn rounds_as_cpu(&self) -> bool {
        self.backend.get().rounds_as_cpu()
    }

    /// Whether a library computes, with threads of its own.
    pub(crate) fn has_library(&self) -> bool {
        self.backend.get().threads() == ThreadUse::Library
    }

    /// Whether it holds weights in memory of its own.
    pub(crate) fn has_memory(&self) -> bool {
        self.backend.get().has_memory()
    }

    /// The drivers that an engine opens for it; `None` if it needs none.
    pub(crate) fn drivers(&self) -> Option<DriverKind> {
        self.backend.get().drivers()
    }

    /// Why it cannot multiply activations that are quantised by row; `None` if it can.
    pub(crate) fn refuses_rows(&self) -> Option<&'static str> {
        self.backend.get().refuses_rows(self)
    }

    /// The rates that it is throttled to.
    pub fn rates(&self) -> Option<&Rates> {
        match &self.pace {
            Pace::Native => None,
            Pace::Throttled(rates) => Some(rates),
        }
    }

    /// As [`rates`](DeviceSpec::rates), to change them.
    pub fn rates_mut(&mut self) -> Option<&mut Rates> {
        match &mut self.pace {
            Pace::Native => None,
            Pace::Throttled(rates) => Some(rates),
        }
    }
}
