//! Checks of device specifications, and access to the settings of each back end.

use lapwing_kernels::device::DeviceKind;

use super::{
    ArraySettings, Backend, DeviceSpec, DeviceSpecError, OpenClSettings, Pace, QnnSettings, Rates,
    WeightForm,
};

impl DeviceSpec {
    /// Checks that kind, back end and pace fit each other. Text only describes devices that pass.
    pub fn check(&self) -> Result<(), DeviceSpecError> {
        let wrong = |reason| {
            Err(DeviceSpecError::Combination { name: self.name.clone(), kind: self.kind, reason })
        };
        match (&self.backend, &self.pace, self.kind) {
            (Backend::Systolic(_), _, DeviceKind::Cpu | DeviceKind::Gpu) => {
                wrong("a systolic array must be an NPU")
            }
            (Backend::Systolic(_), Pace::Native, DeviceKind::Npu) => {
                wrong("a systolic array must be throttled to stated rates")
            }
            (Backend::Systolic(array), _, _)
                if array.int8.is_some_and(|int8| !int8.outliers && int8.prune > 0.0) =>
            {
                wrong(
                    "prune leaves out outliers that outliers=none does not compute; give one of them",
                )
            }
            (Backend::OpenCl(_), _, DeviceKind::Cpu | DeviceKind::Npu) => {
                wrong("an OpenCL device has the role of a GPU")
            }
            (Backend::OpenCl(_), Pace::Throttled(_), _) => {
                wrong("an OpenCL device runs at its own pace")
            }
            (Backend::OpenVino(_), _, DeviceKind::Cpu | DeviceKind::Gpu) => {
                wrong("OpenVINO's graphs are those of an NPU")
            }
            (Backend::OpenVino(_), Pace::Throttled(_), _) => {
                wrong("an OpenVINO device runs at its own pace")
            }
            (Backend::Qnn(_), _, DeviceKind::Cpu | DeviceKind::Gpu) => {
                wrong("QNN's graphs are those of an NPU")
            }
            (Backend::Qnn(_), Pace::Throttled(_), _) => wrong("a QNN device runs at its own pace"),
            (Backend::Qnn(qnn), _, _) if qnn.weights == WeightForm::Stored => {
                wrong("QNN takes weights in f16, int8 or int4 only")
            }
            (Backend::Qnn(qnn), _, _) if qnn.check().is_err() => qnn.check().or_else(wrong),
            (Backend::Cpu, Pace::Native, DeviceKind::Gpu | DeviceKind::Npu) => {
                wrong("only a CPU can be native; an emulated device must be throttled")
            }
            _ => Ok(()),
        }
    }

    /// Whether the CPU kernels compute for it, on threads of the engine.
    pub(crate) fn has_threads(&self) -> bool {
        matches!(self.backend, Backend::Cpu | Backend::Systolic(_))
    }

    /// Whether all its results have the same bits as those of the CPU kernels.
    pub fn rounds_as_cpu(&self) -> bool {
        self.has_threads() && self.array().is_none_or(|array| array.int8.is_none())
    }

    /// OpenVINO's name of the device, if OpenVINO computes.
    pub(crate) fn openvino_device(&self) -> Option<&str> {
        match &self.backend {
            Backend::OpenVino(device) => Some(device),
            _ => None,
        }
    }

    /// The settings of an OpenCL device.
    pub(crate) fn opencl_settings(&self) -> Option<&OpenClSettings> {
        match &self.backend {
            Backend::OpenCl(settings) => Some(settings),
            _ => None,
        }
    }

    pub(crate) fn opencl_settings_mut(&mut self) -> Option<&mut OpenClSettings> {
        match &mut self.backend {
            Backend::OpenCl(settings) => Some(settings),
            _ => None,
        }
    }

    /// The processor of QNN, if QNN computes.
    pub(crate) fn qnn_processor(&self) -> Option<&QnnSettings> {
        match &self.backend {
            Backend::Qnn(processor) => Some(processor),
            _ => None,
        }
    }

    pub(crate) fn qnn_processor_mut(&mut self) -> Option<&mut QnnSettings> {
        match &mut self.backend {
            Backend::Qnn(processor) => Some(processor),
            _ => None,
        }
    }

    /// Whether a library computes, with threads of its own.
    pub(crate) fn has_library(&self) -> bool {
        matches!(self.backend, Backend::OpenVino(_) | Backend::Qnn(_))
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

    /// The systolic array that computes, if one does.
    pub fn array(&self) -> Option<&ArraySettings> {
        match &self.backend {
            Backend::Systolic(array) => Some(array),
            _ => None,
        }
    }

    /// As [`array`](DeviceSpec::array), to change it.
    pub fn array_mut(&mut self) -> Option<&mut ArraySettings> {
        match &mut self.backend {
            Backend::Systolic(array) => Some(array),
            _ => None,
        }
    }
}
