//! NPUs whose graphs Qualcomm QNN prepares and runs.

use lapwing_kernels::device::DeviceKind;
use lapwing_kernels::npu::{BackendInfo, QnnSettings, WeightForm};

use super::back_end::{BackEnd, Form, ThreadUse};
use super::build::{Built, Shared};
use super::keys::{GRAPHS, Key, RATES};
use super::{Backend, DeviceSpec, Pace};
use crate::config::Threads;
use crate::drivers::DriverKind;
use crate::error::Error;

mod build;
mod keys;

pub(super) const FORM: Form = Form {
    name: "qnn",
    divide: None,
    names_kind: false,
    start: |name, kind, _| {
        kind.npu("npu for the form qnn")?;
        Ok(DeviceSpec::qnn(name, QnnSettings::default()))
    },
};

impl BackEnd for QnnSettings {
    fn form(&self, _: &DeviceSpec) -> &'static Form {
        &FORM
    }

    fn keys(&self) -> &'static [&'static [Key]] {
        &[keys::KEYS, RATES, GRAPHS]
    }

    fn check(&self, spec: &DeviceSpec) -> Result<(), &'static str> {
        match (spec.pace, spec.kind) {
            (_, DeviceKind::Cpu | DeviceKind::Gpu | DeviceKind::Own(_)) => {
                Err("QNN's graphs are those of an NPU")
            }
            (Pace::Throttled(_), _) => Err("a QNN device runs at its own pace"),
            _ if self.weights == WeightForm::Stored => {
                Err("QNN takes weights in f16, int8 or int4 only")
            }
            _ => QnnSettings::check(self),
        }
    }

    fn threads(&self) -> ThreadUse {
        ThreadUse::Library
    }

    fn drivers(&self) -> Option<DriverKind> {
        Some(DriverKind::Qnn(self.library.clone()))
    }

    fn refuses_rows(&self, _: &DeviceSpec) -> Option<&'static str> {
        Some("it multiplies activations in binary16")
    }

    fn graphs(&self, _: &DeviceSpec) -> BackendInfo {
        BackendInfo::half_library("qnn", self.weights)
    }

    fn build(
        &self,
        _: usize,
        spec: &DeviceSpec,
        _: &Threads,
        shared: &Shared<'_>,
    ) -> Result<Built, Error> {
        build::build(spec, self, shared)
    }
}

impl DeviceSpec {
    /// An NPU whose graphs Qualcomm QNN runs.
    pub fn qnn(name: &str, processor: QnnSettings) -> DeviceSpec {
        DeviceSpec::new(name, DeviceKind::Npu, Backend::Qnn(processor), Pace::Native)
    }

    /// The processor of QNN, if QNN computes.
    fn qnn_processor(&self) -> Option<&QnnSettings> {
        match &self.backend {
            Backend::Qnn(processor) => Some(processor),
            _ => None,
        }
    }

    fn qnn_processor_mut(&mut self) -> Option<&mut QnnSettings> {
        match &mut self.backend {
            Backend::Qnn(processor) => Some(processor),
            _ => None,
        }
    }
}
