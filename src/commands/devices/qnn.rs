//! The processor of Qualcomm QNN.

use std::fmt::Write;

use lapwing_kernels::npu::{QnnInfo, qnn_device};
use serde::Serialize;

use super::Device;
use crate::cli::visible::visible;

/// A processor of QNN in JSON.
#[derive(Serialize)]
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

/// The processor of QNN, and one line on it.
pub(super) fn look() -> (Device, Vec<QnnDevice>) {
    let (found, why) = match qnn_device() {
        Ok(info) if info.emulated => (
            Some(info),
            "no NPU; --device npu=qnn emulates one on the CPU, with true values and no true times"
                .to_owned(),
        ),
        Ok(info) => (Some(info), "used with --device npu=qnn".to_owned()),
        Err(error) => (None, error.to_string()),
    };
    let found: Vec<QnnDevice> = found.into_iter().map(QnnDevice::from).collect();
    let libraries = found.iter().map(|device| device.library.clone()).collect();
    (Device { kind: "qnn", present: !found.is_empty(), why, libraries }, found)
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
