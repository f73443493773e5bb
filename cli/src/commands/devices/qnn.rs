//! The processor of Qualcomm QNN.

use std::fmt::Write;

use lapwing_engine::drivers::{DriverKind, Lister};
use lapwing_kernels::npu::{QnnInfo, qnn_device};
use serde::{Deserialize, Serialize};

use super::found::{Device, Found};
use super::seen::QnnProcessor;
use crate::cli::visible::visible;

/// A processor of QNN in JSON.
#[derive(Serialize, Deserialize)]
pub(super) struct QnnDevice {
    processor: String,
    version: String,
    build: String,
    emulated: bool,
    library: String,
}

impl From<QnnInfo> for QnnDevice {
    fn from(info: QnnInfo) -> QnnDevice {
        QnnDevice {
            processor: info.processor,
            version: info.version,
            build: info.build,
            emulated: info.emulated,
            library: info.library.display().to_string(),
        }
    }
}

impl QnnDevice {
    /// The processor without the path of the library.
    pub(super) fn without_path(self) -> QnnProcessor {
        let QnnDevice { processor, version, build, emulated, library: _ } = self;
        QnnProcessor { processor, version, build, emulated }
    }
}

/// The processor of QNN, as this process finds it.
pub(super) fn list() -> Result<Vec<QnnDevice>, String> {
    let info = qnn_device().map_err(|error| error.to_string())?;
    Ok(vec![QnnDevice::from(info)])
}

/// The processor of QNN, and one line on it.
pub(super) fn look(lister: &Lister) -> (Device, Found<QnnDevice>) {
    let found: Found<QnnDevice> = Found::by(lister, &DriverKind::Qnn(None));
    let why = match found.devices.iter().any(|device| device.emulated) {
        true => {
            "no NPU; --device npu=qnn emulates one on the CPU, with true values and no true times"
        }
        false => "used with --device npu=qnn",
    };
    let why = found.why_none.clone().unwrap_or_else(|| why.to_owned());
    let libraries = found.devices.iter().map(|device| device.library.clone()).collect();
    (Device { kind: "qnn", present: !found.devices.is_empty(), why, libraries }, found)
}

/// Writes a line for each processor.
pub(super) fn describe(devices: &[QnnDevice], text: &mut String) {
    for device in devices {
        let emulated = if device.emulated { ", emulated" } else { "" };
        // Writing to a string cannot fail.
        _ = writeln!(
            text,
            "  {}{emulated} (--device npu=qnn), QNN {}, interface {}",
            visible(&device.processor),
            visible(&device.build),
            visible(&device.version),
        );
    }
}
