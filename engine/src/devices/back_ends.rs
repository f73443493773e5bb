//! All back ends. Each has a file here.

use super::back_end::{BackEnd, Form};
use super::{Backend, cpu, opencl, openvino, qnn, systolic};

/// All forms of devices as text.
pub(super) const FORMS: [&Form; 6] =
    [&cpu::CORES, &cpu::THROTTLED, &systolic::FORM, &opencl::FORM, &openvino::FORM, &qnn::FORM];

impl Backend {
    /// What it is to an engine.
    pub(super) fn get(&self) -> &dyn BackEnd {
        match self {
            Backend::Cpu => &cpu::Cpu,
            Backend::Systolic(settings) => settings,
            Backend::OpenCl(settings) => settings,
            Backend::OpenVino(settings) => settings,
            Backend::Qnn(settings) => settings,
        }
    }
}
