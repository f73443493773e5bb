//! CPU kernels on threads of the engine, at their own pace or throttled.

use lapwing_kernels::device::DeviceKind;

use super::back_end::{BackEnd, Form, ThreadUse, WrongKind};
use super::build::{Built, Shared, on_threads};
use super::keys::{GRAPHS, Key, RATES, THREADS};
use super::memory::MEMORY;
use super::{DeviceSpec, Pace};
use crate::config::Threads;
use crate::error::Error;

pub(super) const CORES: Form = Form {
    name: "cores",
    divide: None,
    names_kind: false,
    start: |name, kind, _| match kind.any() {
        None | Some(DeviceKind::Cpu) => Ok(DeviceSpec::cpu().named(name)),
        Some(kind) => {
            let expected = "cpu for the form cores; an emulated device is throttled or systolic";
            Err(WrongKind { kind, expected })
        }
    },
};

pub(super) const THROTTLED: Form = Form {
    name: "throttled",
    divide: None,
    names_kind: true,
    start: |name, kind, _| Ok(DeviceSpec::throttled(name, kind.any().unwrap_or(DeviceKind::Gpu))),
};

/// The CPU kernels.
pub(super) struct Cpu;

impl BackEnd for Cpu {
    fn form(&self, spec: &DeviceSpec) -> &'static Form {
        if spec.is_throttled() { &THROTTLED } else { &CORES }
    }

    fn keys(&self) -> &'static [&'static [Key]] {
        &[THREADS, RATES, MEMORY, GRAPHS]
    }

    fn check(&self, spec: &DeviceSpec) -> Result<(), &'static str> {
        match (spec.pace, spec.kind) {
            (_, DeviceKind::Own(_)) => {
                Err("devices of a kind of your own are for simulations; take cpu, gpu or npu")
            }
            (Pace::Native, DeviceKind::Gpu | DeviceKind::Npu) => {
                Err("only a CPU can be native; an emulated device must be throttled")
            }
            (_, DeviceKind::Cpu | DeviceKind::Npu) if spec.memory.is_some() => {
                Err("only an emulated GPU can have memory of its own; leave it out")
            }
            _ => Ok(()),
        }
    }

    fn threads(&self) -> ThreadUse {
        ThreadUse::Engine
    }

    fn rounds_as_cpu(&self) -> bool {
        true
    }

    fn refuses_rows(&self, spec: &DeviceSpec) -> Option<&'static str> {
        spec.is_static().then_some("its graphs quantise activations in blocks")
    }

    fn build(
        &self,
        number: usize,
        spec: &DeviceSpec,
        threads: &Threads,
        shared: &Shared<'_>,
    ) -> Result<Built, Error> {
        on_threads::build(number, spec, threads, shared)
    }
}
