//! Devices of Intel OpenVINO.

use std::fmt::Write;

use lapwing_engine::drivers::{DriverKind, Lister};
use lapwing_kernels::npu::{OpenVinoInfo, openvino_device, openvino_devices};
use serde::{Deserialize, Serialize};

use super::found::{Device, Found};
use super::seen::OpenVinoProcessor;
use crate::cli::visible::visible;

/// A device of OpenVINO in JSON.
#[derive(Serialize, Deserialize)]
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

impl OpenVinoDevice {
    /// The device without the path of the library.
    pub(super) fn without_path(self) -> OpenVinoProcessor {
        let OpenVinoDevice { device, processor, version, library: _ } = self;
        OpenVinoProcessor { device, processor, version }
    }
}

/// Lists the devices of OpenVINO in this process, or finds one by its name.
pub(super) fn list(device: Option<&str>) -> Result<Vec<OpenVinoDevice>, String> {
    let found = match device {
        Some(device) => {
            openvino_device(Some(device).filter(|name| !name.is_empty())).map(|info| vec![info])
        }
        None => openvino_devices(),
    };
    let found = found.map_err(|error| error.to_string())?;
    Ok(found.into_iter().map(OpenVinoDevice::from).collect())
}

/// The devices that OpenVINO lists, and one line on them.
pub(super) fn look(lister: &Lister) -> (Device, Found<OpenVinoDevice>) {
    let found: Found<OpenVinoDevice> = Found::by(lister, &DriverKind::OpenVino);
    let has_npu = found.devices.iter().any(|device| device.device.starts_with("NPU"));
    let why = match has_npu {
        true => "used with --device npu=openvino",
        false => "no NPU; --device npu=openvino uses the CPU as a stand-in",
    };
    let why = found.why_none.clone().unwrap_or_else(|| why.to_owned());
    let libraries = found.devices.first().map(|device| device.library.clone());
    let (present, libraries) = (!found.devices.is_empty(), libraries.into_iter().collect());
    (Device { kind: "openvino", present, why, libraries }, found)
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
