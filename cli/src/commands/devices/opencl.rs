//! Devices with an OpenCL driver.

use std::fmt::Write;

use indicatif::HumanBytes;
use lapwing_engine::drivers::{DriverKind, Lister};
use lapwing_kernels::opencl::{OpenClInfo, devices};
use serde::{Deserialize, Serialize};

use super::found::{Device, Found};
use crate::cli::visible::visible;

/// An OpenCL device in JSON.
#[derive(Serialize, Deserialize)]
pub(crate) struct OpenClDevice {
    pub(crate) index: usize,
    pub(crate) name: String,
    platform: String,
    vendor: String,
    pub(crate) driver: String,
    pub(crate) version: String,
    pub(crate) kind: String,
    units: u32,
    mhz: u32,
    memory_bytes: u64,
    buffer_max_bytes: u64,
    local_memory_bytes: u64,
    group_max: usize,
    unified_memory: bool,
    /// How values cross between host and device: in place, or by copies.
    sharing: String,
    fp16: bool,
    subgroups: bool,
    integer_dot: bool,
    timer_ns: usize,
}

impl From<OpenClInfo> for OpenClDevice {
    fn from(info: OpenClInfo) -> OpenClDevice {
        let sharing = match info.shared_kind() {
            Some(kind) => format!("in place ({kind})"),
            None => "by copies (the device has memory of its own)".to_owned(),
        };
        OpenClDevice {
            sharing,
            index: info.index,
            kind: info.kind.to_string(),
            name: info.name,
            platform: info.platform,
            vendor: info.vendor,
            driver: info.driver,
            version: info.version,
            units: info.units,
            mhz: info.mhz,
            memory_bytes: info.memory,
            buffer_max_bytes: info.buffer_max,
            local_memory_bytes: info.local_memory,
            group_max: info.group_max,
            unified_memory: info.is_unified,
            fp16: info.fp16,
            subgroups: info.subgroups,
            integer_dot: info.integer_dot,
            timer_ns: info.timer_ns,
        }
    }
}

#[cfg(test)]
impl OpenClDevice {
    /// A device of a kind.
    pub(super) fn example(index: usize, kind: &str) -> OpenClDevice {
        let text = |text: &str| text.to_owned();
        OpenClDevice {
            index,
            name: text("a device"),
            platform: text("a platform"),
            vendor: text("a vendor"),
            driver: text("1.0"),
            version: text("OpenCL 3.0"),
            kind: text(kind),
            units: 1,
            mhz: 1000,
            memory_bytes: 1 << 30,
            buffer_max_bytes: 1 << 30,
            local_memory_bytes: 1 << 15,
            group_max: 256,
            unified_memory: true,
            sharing: text("in place"),
            fp16: false,
            subgroups: false,
            integer_dot: false,
            timer_ns: 1,
        }
    }
}

/// Lists the devices of all drivers in this process.
pub(super) fn list() -> Result<Vec<OpenClDevice>, String> {
    let found = devices().map_err(|error| error.to_string())?;
    Ok(found.into_iter().map(OpenClDevice::from).collect())
}

/// The devices of all drivers, and one line on them.
pub(super) fn look(lister: &Lister) -> (Device, Found<OpenClDevice>) {
    let found = Found::by(lister, &DriverKind::OpenCl);
    let count = found.devices.len();
    let plural = if count == 1 { "" } else { "s" };
    let why = format!("{count} device{plural}, used with --device gpu=opencl");
    let why = found.why_none.clone().unwrap_or(why);
    (Device { kind: "opencl", present: count > 0, why, libraries: Vec::new() }, found)
}

/// Writes a paragraph for each device.
pub(super) fn describe(devices: &[OpenClDevice], text: &mut String) {
    for device in devices {
        let memory = if device.unified_memory { "shared with the host" } else { "its own" };
        let features = [
            (device.fp16, "fp16"),
            (device.subgroups, "sub-groups"),
            (device.integer_dot, "int8 dot products"),
        ];
        let unused = features.iter().filter(|(has, _)| *has).map(|(_, name)| *name);
        let unused = unused.collect::<Vec<_>>().join(", ");
        let unused = match unused.is_empty() {
            true => String::new(),
            false => format!("also has {unused}, which no kernel uses; "),
        };
        let timer = match device.timer_ns {
            0 => "no timer".to_owned(),
            ns => format!("timer of {ns} ns"),
        };
        // Writing to a string cannot fail.
        _ = writeln!(
            text,
            "  {} (--device gpu=opencl:{})\n    {}, {} compute units at {} MHz; {}, driver {} of {}\n    \
             memory: {}, {memory}; largest buffer {}; {} of local memory; work-groups up to {}\n    \
             values to and from the host: {}\n    \
             {unused}{timer}",
            visible(&device.name),
            device.index,
            device.kind,
            device.units,
            device.mhz,
            visible(&device.version),
            visible(&device.driver),
            visible(&device.platform),
            HumanBytes(device.memory_bytes),
            HumanBytes(device.buffer_max_bytes),
            HumanBytes(device.local_memory_bytes),
            device.group_max,
            device.sharing,
        );
    }
}
