//! OpenCL devices of this machine.

use std::ffi::OsStr;
use std::fmt;
use std::sync::Mutex;

use cl3::device::{CL_DEVICE_SVM_FINE_GRAIN_BUFFER, CL_DEVICE_TYPE_ALL};
use dlopen2::raw::Library;
use opencl3::device::{CL_DEVICE_TYPE_CPU, CL_DEVICE_TYPE_GPU, Device};
use opencl3::platform::get_platforms;

use super::error::OpenClError;
use lapwing_model::signals;

/// Kind of an OpenCL device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenClKind {
    /// A CPU: its driver runs kernels on the host's cores.
    Cpu,
    /// A GPU.
    Gpu,
    /// Another processor.
    Other,
}

impl fmt::Display for OpenClKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            OpenClKind::Cpu => "CPU",
            OpenClKind::Gpu => "GPU",
            OpenClKind::Other => "other processor",
        })
    }
}

/// How the host uses memory of a device in place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SharedKind {
    /// Shared virtual memory in fine grain, with a buffer over it. The standard promises that the buffer has that memory
    /// as its storage (`clSVMAlloc`), that a command sees what the host wrote before it was added, and that the host sees
    /// what a command wrote once it has waited for the command's event.
    FineGrain,
    /// A buffer in memory of the host (`CL_MEM_ALLOC_HOST_PTR`) that stays mapped. The standard leaves open what happens
    /// when a kernel uses a buffer that is mapped, so it is used only where a probe at the start finds that both sides
    /// see what the other wrote.
    Mapped,
}

impl fmt::Display for SharedKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SharedKind::FineGrain => "fine-grained shared virtual memory",
            SharedKind::Mapped => "mapped buffers, if a probe at the start passes",
        })
    }
}

/// An OpenCL device and its features, as its driver states them.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct OpenClInfo {
    /// Number in the list, from 0.
    pub index: usize,
    /// Name of the device.
    pub name: String,
    /// Name of the platform, which is the driver.
    pub platform: String,
    /// Vendor of the device.
    pub vendor: String,
    /// Version of the driver.
    pub driver: String,
    /// OpenCL version of the device, such as `OpenCL 3.0`.
    pub version: String,
    /// Version of OpenCL C that its compiler takes.
    pub c_version: String,
    /// Kind of processor.
    pub kind: OpenClKind,
    /// Compute units.
    pub units: u32,
    /// Clock rate in MHz, 0 where unknown.
    pub mhz: u32,
    /// Bytes of memory.
    pub memory: u64,
    /// Bytes of the largest buffer.
    pub buffer_max: u64,
    /// Bytes of local memory of a work-group.
    pub local_memory: u64,
    /// Largest work-group.
    pub group_max: usize,
    /// Whether host and device share one memory.
    pub is_unified: bool,
    /// Whether it has shared virtual memory in fine grain.
    pub has_fine_grain: bool,
    /// Whether kernels may compute with 16-bit floats.
    pub fp16: bool,
    /// Whether the work-items of a sub-group may exchange values.
    pub subgroups: bool,
    /// Whether there are instructions for dot products of 8-bit integers.
    pub integer_dot: bool,
    /// Resolution of the device's clock in nanoseconds; 0 without one.
    pub timer_ns: usize,
    /// Alignment of sub-buffers in bytes.
    pub alignment: usize,
    pub(super) id: DeviceId,
}

impl OpenClInfo {
    /// How values are used in place by host and device, where they share one memory; `None` where values are copied.
    pub fn shared_kind(&self) -> Option<SharedKind> {
        let kind = if self.has_fine_grain { SharedKind::FineGrain } else { SharedKind::Mapped };
        self.is_unified.then_some(kind)
    }

    /// Whether runs of few rows may be one persistent kernel: only the compiler of NVIDIA's driver is known to have a fence
    /// for all work-groups.
    pub fn may_be_persistent(&self) -> bool {
        self.vendor.contains("NVIDIA")
    }
}

/// The driver's handle of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DeviceId(usize);

impl DeviceId {
    pub(super) fn handle(self) -> opencl3::types::cl_device_id {
        std::ptr::with_exposed_provenance_mut(self.0)
    }
}

/// The devices of all drivers, in the library's order; empty where a driver lists none.
///
/// # Errors
/// [`OpenClError::NamedLibrary`] if `OPENCL_DYLIB_PATH` is set and names no library, [`OpenClError::NoLibrary`] without an
/// OpenCL library, [`OpenClError::NoDevice`] without a driver.
pub fn devices() -> Result<Vec<OpenClInfo>, OpenClError> {
    signals::keep(list)
}

fn list() -> Result<Vec<OpenClInfo>, OpenClError> {
    // Some loaders list no driver to a thread that asks while another one's first question loads them.
    static ASKING: Mutex<()> = Mutex::new(());
    let _alone = ASKING.lock();
    let is_open = cl3::is_opencl_runtime_available();
    // After `cl3`, which keeps the library: a driver that is closed in between may not open again.
    std::env::var_os("OPENCL_DYLIB_PATH").map_or(Ok(()), |paths| check_named(&paths))?;
    if !is_open {
        return Err(OpenClError::NoLibrary);
    }
    let platforms = get_platforms().map_err(|_| OpenClError::NoDevice)?;
    let mut found = Vec::new();
    for platform in platforms {
        let name = platform.name().unwrap_or_default();
        for id in platform.get_devices(CL_DEVICE_TYPE_ALL).unwrap_or_default() {
            let device = Device::new(id);
            // A device that answers no question is none to compute on.
            if device.available().unwrap_or(false) && device.compiler_available().unwrap_or(false) {
                found.push(describe(found.len(), &name, &device));
            }
        }
    }
    if found.is_empty() { Err(OpenClError::NoDevice) } else { Ok(found) }
}

/// Checks that one of the paths can be opened. `cl3` opens the first that it can, and the system's library if there is none,
/// or if the paths are not UTF-8.
fn check_named(paths: &OsStr) -> Result<(), OpenClError> {
    let Some(text) = paths.to_str() else {
        return Err(OpenClError::NamedLibrary { tried: format!("{paths:?} is not UTF-8") });
    };
    let mut tried = Vec::new();
    for path in text.split(';') {
        // Unix opens the program itself for an empty path, so that `cl3` looks no further.
        if path.is_empty() {
            tried.push("a path is empty".to_owned());
            break;
        }
        let why = match Library::open(path) {
            Ok(_) => return Ok(()),
            Err(dlopen2::Error::OpeningLibraryError(why)) => why.to_string(),
            Err(error) => error.to_string(),
        };
        let why = why.strip_prefix(path).map_or(&*why, |why| why.trim_start_matches(": "));
        tried.push(format!("'{path}': {why}"));
    }
    Err(OpenClError::NamedLibrary { tried: tried.join(", ") })
}

fn describe(index: usize, platform: &str, device: &Device) -> OpenClInfo {
    let text =
        |text: Result<String, _>| text.map(|t: String| t.trim().to_owned()).unwrap_or_default();
    let extensions = device.extensions().unwrap_or_default();
    let has = |name: &str| extensions.split_whitespace().any(|known| known == name);
    let kind = match device.dev_type() {
        Ok(kind) if kind & CL_DEVICE_TYPE_GPU != 0 => OpenClKind::Gpu,
        Ok(kind) if kind & CL_DEVICE_TYPE_CPU != 0 => OpenClKind::Cpu,
        _ => OpenClKind::Other,
    };
    let is_unified = device.host_unified_memory().unwrap_or(false);
    OpenClInfo {
        index,
        name: text(device.name()),
        platform: platform.trim().to_owned(),
        vendor: text(device.vendor()),
        driver: text(device.driver_version()),
        version: text(device.version()),
        c_version: text(device.opencl_c_version()),
        kind,
        units: device.max_compute_units().unwrap_or(1),
        mhz: device.max_clock_frequency().unwrap_or(0),
        memory: device.global_mem_size().unwrap_or(0),
        buffer_max: device.max_mem_alloc_size().unwrap_or(0),
        local_memory: device.local_mem_size().unwrap_or(0),
        group_max: device.max_work_group_size().unwrap_or(1),
        is_unified: is_unified || kind == OpenClKind::Cpu,
        has_fine_grain: device.svm_mem_capability() & CL_DEVICE_SVM_FINE_GRAIN_BUFFER != 0,
        fp16: has("cl_khr_fp16"),
        // Some drivers have sub-groups and do not list the extension.
        subgroups: has("cl_khr_subgroups") || device.max_num_sub_groups().unwrap_or(0) > 0,
        integer_dot: has("cl_khr_integer_dot_product"),
        timer_ns: device.profiling_timer_resolution().unwrap_or(0),
        alignment: device.mem_base_addr_align().unwrap_or(1024) as usize / 8,
        id: DeviceId(device.id().expose_provenance()),
    }
}

/// The device that `wanted` selects: empty for the first GPU, or the first device where there is no
/// GPU; a number of the list; or a part of a device's or platform's name, in any case.
///
/// # Errors
/// As [`devices`]; [`OpenClError::Unknown`] if no device matches.
pub fn find(wanted: &str) -> Result<OpenClInfo, OpenClError> {
    let mut all = devices()?;
    let part = wanted.to_lowercase();
    let named = |info: &OpenClInfo| {
        [&info.name, &info.platform].iter().any(|name| name.to_lowercase().contains(&part))
    };
    let at = match wanted.parse::<usize>() {
        _ if wanted.is_empty() => {
            Some(all.iter().position(|info| info.kind == OpenClKind::Gpu).unwrap_or(0))
        }
        Ok(index) => (index < all.len()).then_some(index),
        Err(_) => all.iter().position(named),
    };
    match at {
        Some(at) => Ok(all.swap_remove(at)),
        None => {
            let found = all.iter().map(|info| format!("{} {}", info.index, info.name));
            let found = found.collect::<Vec<_>>().join(", ");
            Err(OpenClError::Unknown { wanted: wanted.to_owned(), found })
        }
    }
}

#[cfg(test)]
mod tests;
