//! Processors with an OpenCL driver.

#[cfg(not(feature = "opencl"))]
use lapwing_kernels::device::Packing;
use lapwing_kernels::device::{Arithmetic, DeviceInfo, DeviceKind, OpSet};
#[cfg(feature = "opencl")]
use lapwing_kernels::opencl::PACKING;

use super::back_end::{BackEnd, Form, ThreadUse};
use super::build::{Built, Shared};
use super::keys::{GRAPHS, Key, RATES};
use super::{Backend, DeviceSpec, Pace};
use crate::config::Threads;
use crate::drivers::DriverKind;
use crate::error::Error;

mod build;
mod in_place;
mod keys;
mod settings;

pub(crate) use in_place::InPlace;
pub use settings::{OpenClMemory, OpenClSettings};

#[cfg(not(feature = "opencl"))]
const PACKING: Packing = Packing::FILE;

pub(super) const FORM: Form = Form {
    name: "opencl",
    divide: Some(keys::divided),
    names_kind: false,
    start: |name, _, which| Ok(DeviceSpec::opencl(name, which)),
};

impl BackEnd for OpenClSettings {
    fn form(&self, _: &DeviceSpec) -> &'static Form {
        &FORM
    }

    fn keys(&self) -> &'static [&'static [Key]] {
        &[keys::KEYS, RATES, GRAPHS]
    }

    fn which(&self) -> &str {
        &self.which
    }

    fn check(&self, spec: &DeviceSpec) -> Result<(), &'static str> {
        match (spec.pace, spec.kind) {
            (_, DeviceKind::Cpu | DeviceKind::Npu | DeviceKind::Own(_)) => {
                Err("an OpenCL device has the role of a GPU")
            }
            (Pace::Throttled(_), _) => Err("an OpenCL device runs at its own pace"),
            _ => Ok(()),
        }
    }

    fn threads(&self) -> ThreadUse {
        ThreadUse::None
    }

    fn has_memory(&self) -> bool {
        true
    }

    fn drivers(&self) -> Option<DriverKind> {
        Some(DriverKind::OpenCl)
    }

    fn refuses_rows(&self, _: &DeviceSpec) -> Option<&'static str> {
        Some("it multiplies activations in f32")
    }

    fn info(&self, spec: &DeviceSpec) -> DeviceInfo {
        DeviceInfo {
            ops: OpSet::COMMON,
            packing: PACKING,
            arithmetic: Arithmetic::Own,
            ..DeviceInfo::new(&*spec.name, spec.kind)
        }
    }

    fn build(
        &self,
        number: usize,
        spec: &DeviceSpec,
        _: &Threads,
        shared: &Shared<'_>,
    ) -> Result<Built, Error> {
        build::build(number, spec, self, shared)
    }
}

impl DeviceSpec {
    /// A processor with an OpenCL driver: `which` is a number of the list of `lapwing devices`, a part
    /// of a device's or driver's name, or empty for the first GPU.
    pub fn opencl(name: &str, which: &str) -> DeviceSpec {
        let settings = OpenClSettings { which: which.to_owned(), ..OpenClSettings::default() };
        DeviceSpec::new(name, DeviceKind::Gpu, Backend::OpenCl(settings), Pace::Native)
    }

    /// The settings of an OpenCL device.
    fn opencl_settings(&self) -> Option<&OpenClSettings> {
        match &self.backend {
            Backend::OpenCl(settings) => Some(settings),
            _ => None,
        }
    }

    fn opencl_settings_mut(&mut self) -> Option<&mut OpenClSettings> {
        match &mut self.backend {
            Backend::OpenCl(settings) => Some(settings),
            _ => None,
        }
    }
}
