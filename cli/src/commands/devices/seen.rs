//! Devices with drivers, for readers on other machines: without paths.

use serde::{Deserialize, Serialize};

use super::opencl::OpenClDevice;
use super::{opencl, openvino, qnn};
use crate::cli::drivers::lister;

/// The devices that drivers list, and the drivers that fail.
#[derive(Serialize, Deserialize)]
pub(crate) struct Drivers {
    pub(crate) opencl: Vec<OpenClDevice>,
    pub(crate) openvino: Vec<OpenVinoProcessor>,
    pub(crate) qnn: Vec<QnnProcessor>,
    pub(crate) failed: Vec<FailedDriver>,
}

/// A device of OpenVINO.
#[derive(Serialize, Deserialize)]
pub(crate) struct OpenVinoProcessor {
    pub(crate) device: String,
    pub(crate) processor: String,
    pub(crate) version: String,
}

/// A processor of QNN.
#[derive(Serialize, Deserialize)]
pub(crate) struct QnnProcessor {
    pub(crate) processor: String,
    pub(crate) version: String,
    pub(crate) build: String,
    pub(crate) emulated: bool,
}

/// A driver that aborted, crashed or hung while its devices were listed.
#[derive(Serialize, Deserialize)]
pub(crate) struct FailedDriver {
    pub(crate) kind: String,
    pub(crate) driver: String,
    pub(crate) what: String,
    pub(crate) said: Option<String>,
}

impl Drivers {
    /// Those of this machine. Other processes list them, each for at most 20 seconds.
    pub(crate) fn found() -> Drivers {
        let lister = lister();
        // OpenVINO does without the drivers of OpenCL that fail, so it comes after them.
        let opencl = opencl::look(&lister).1;
        let openvino = openvino::look(&lister).1;
        let qnn = qnn::look(&lister).1;
        let failed = [opencl.failed, openvino.failed, qnn.failed].concat().into_iter();
        let failed = failed.map(|failed| {
            let (what, said) = failed.parts();
            FailedDriver { kind: failed.kind.to_owned(), driver: failed.driver, what, said }
        });
        Drivers {
            opencl: opencl.devices,
            openvino: openvino.devices.into_iter().map(|device| device.without_path()).collect(),
            qnn: qnn.devices.into_iter().map(|device| device.without_path()).collect(),
            failed: failed.collect(),
        }
    }

    /// The processors other than CPUs, as values of `--device`.
    pub(crate) fn processors(&self) -> Vec<String> {
        let gpus = self.opencl.iter().filter(|device| device.kind != "CPU");
        let gpus = gpus.map(|device| format!("opencl:{}", device.index));
        let npus = self.openvino.iter().filter(|device| device.device.starts_with("NPU"));
        let npus = npus.map(|device| format!("openvino:device={}", device.device));
        let qnn = self.qnn.iter().filter(|device| !device.emulated).map(|_| "qnn".to_owned());
        let named = |name: &'static str| {
            move |(at, form): (usize, String)| match at {
                0 => format!("{name}={form}"),
                _ => format!("{name}{}={form}", at + 1),
            }
        };
        let gpus = gpus.enumerate().map(named("gpu"));
        gpus.chain(npus.chain(qnn).enumerate().map(named("npu"))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn real_processors_are_named_by_kind_and_stand_ins_are_left_out() {
        let openvino = |device: &str| OpenVinoProcessor {
            device: device.to_owned(),
            processor: "a processor".to_owned(),
            version: "1".to_owned(),
        };
        let qnn = |emulated| QnnProcessor {
            processor: "a processor".to_owned(),
            version: "1".to_owned(),
            build: "1".to_owned(),
            emulated,
        };
        let mut drivers = Drivers {
            opencl: vec![OpenClDevice::example(0, "CPU"), OpenClDevice::example(1, "GPU")],
            openvino: vec![openvino("CPU"), openvino("NPU")],
            qnn: vec![qnn(true)],
            failed: Vec::new(),
        };
        assert_eq!(drivers.processors(), ["gpu=opencl:1", "npu=openvino:device=NPU"]);
        drivers.opencl.push(OpenClDevice::example(2, "GPU"));
        drivers.qnn = vec![qnn(false)];
        let all = ["gpu=opencl:1", "gpu2=opencl:2", "npu=openvino:device=NPU", "npu2=qnn"];
        assert_eq!(drivers.processors(), all);
        for text in drivers.processors() {
            let parsed = text.parse::<lapwing_engine::devices::DeviceSpec>();
            assert!(parsed.is_ok(), "{text}: {parsed:?}");
        }
    }
}
