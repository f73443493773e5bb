//! Devices of Intel OpenVINO.

use std::fmt::Write;

use lapwing_kernels::npu::{OpenVinoInfo, openvino_devices};
use serde::Serialize;

use super::Device;
use crate::cli::visible::visible;

/// A device of OpenVINO in JSON.
#[derive(Serialize)]
pub(super) struct OpenVinoDevice {
    device: String,
    processor: String,
    version: String,
    library: String,
}

impl From<OpenVinoInfo> for OpenVinoDevice {
    fn from(info: OpenVinoInfo) -> OpenVinoDevice {
        OpenVinoDevice {
            device: info.device,
            processor: info.processor,
            version: info.version,
            library: info.library.display().to_string(),
        }
    }
}

/// The devices that OpenVINO lists, and one line on them.
pub(super) fn look() -> (Device, Vec<OpenVinoDevice>) {
    let (found, why) = match openvino_devices() {
        Ok(found) => {
            let has_npu = found.iter().any(|info| info.device.starts_with("NPU"));
            let why = match has_npu {
                true => "used with --device npu=openvino",
                false => "no NPU; --device npu=openvino uses the CPU as a stand-in",
            };
            (found, why.to_owned())
        }
        Err(error) => (Vec::new(), error.to_string()),
    };
    let libraries = found.first().map(|info| info.library.display().to_string());
    let libraries = libraries.into_iter().collect();
    let device = Device { kind: "openvino", present: !found.is_empty(), why, libraries };
    (device, found.into_iter().map(OpenVinoDevice::from).collect())
}

/// Writes a line for each device.
pub(super) fn describe(devices: &[OpenVinoDevice], text: &mut String) {
    for device in devices {
        // Writing to a string cannot fail.
        _ = writeln!(
            text,
            "  {} (--device npu=openvino:device={}), OpenVINO {}",
            visible(&device.processor),
            visible(&device.device),
            visible(&device.version),
        );
    }
}
