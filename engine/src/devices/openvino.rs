//! NPUs whose graphs OpenVINO compiles.

use lapwing_kernels::device::DeviceKind;
use lapwing_kernels::npu::BackendInfo;

use super::back_end::{BackEnd, Form, ThreadUse};
use super::build::{Built, Shared};
use super::keys::{GRAPHS, Key, RATES, THREADS};
use super::{Backend, DeviceSpec, Pace};
use crate::config::Threads;
use crate::drivers::DriverKind;
use crate::error::Error;

mod build;
mod settings;

pub use settings::OpenVinoSettings;

pub(super) const FORM: Form = Form {
    name: "openvino",
    divide: None,
    names_kind: false,
    start: |name, kind, _| {
        kind.npu("npu for the form openvino")?;
        Ok(DeviceSpec::openvino(name, ""))
    },
};

const KEYS: &[Key] = &[Key {
    name: "device",
    expected: "OpenVINO's name of a device, such as NPU or CPU",
    read: |spec, text| {
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '.' || c == '_';
        (!text.is_empty() && text.len() <= 32 && text.chars().all(is_name)).then_some(())?;
        spec.backend = Backend::OpenVino(OpenVinoSettings { device: text.to_owned() });
        Some(())
    },
    write: |spec| match &spec.backend {
        Backend::OpenVino(OpenVinoSettings { device }) if !device.is_empty() => {
            Some(device.clone())
        }
        _ => None,
    },
    of: |_| true,
}];

impl BackEnd for OpenVinoSettings {
    fn form(&self, _: &DeviceSpec) -> &'static Form {
        &FORM
    }

    fn keys(&self) -> &'static [&'static [Key]] {
        &[THREADS, KEYS, RATES, GRAPHS]
    }

    fn check(&self, spec: &DeviceSpec) -> Result<(), &'static str> {
        match (spec.pace, spec.kind) {
            (_, DeviceKind::Cpu | DeviceKind::Gpu | DeviceKind::Own(_)) => {
                Err("OpenVINO's graphs are those of an NPU")
            }
            (Pace::Throttled(_), _) => Err("an OpenVINO device runs at its own pace"),
            _ => Ok(()),
        }
    }

    fn threads(&self) -> ThreadUse {
        ThreadUse::Library
    }

    fn drivers(&self) -> Option<DriverKind> {
        Some(DriverKind::OpenVinoDevice(self.device.clone()))
    }

    fn refuses_rows(&self, _: &DeviceSpec) -> Option<&'static str> {
        Some("it multiplies activations in f32")
    }

    fn graphs(&self, _: &DeviceSpec) -> BackendInfo {
        BackendInfo::float_library("openvino")
    }

    fn build(
        &self,
        _: usize,
        spec: &DeviceSpec,
        threads: &Threads,
        shared: &Shared<'_>,
    ) -> Result<Built, Error> {
        build::build(spec, &self.device, threads, shared)
    }
}

impl DeviceSpec {
    /// An NPU whose graphs OpenVINO compiles. `device` is OpenVINO's name of it, or empty for the NPU of
    /// this machine, and for its CPU where there is none.
    pub fn openvino(name: &str, device: &str) -> DeviceSpec {
        let settings = OpenVinoSettings { device: device.to_owned() };
        DeviceSpec::new(name, DeviceKind::Npu, Backend::OpenVino(settings), Pace::Native)
    }
}
