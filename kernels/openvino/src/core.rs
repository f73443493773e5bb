//! The library's object for everything else, its models and its tensors.
#![expect(unsafe_code, reason = "calls a C library")]

use std::ffi::{CStr, CString, c_char};
use std::path::PathBuf;
use std::ptr;

use super::error::OpenVinoError;
use super::library::{ElementCode, Handle, Loaded, RawDevices, RawShape, RawVersion, Status};
use super::search;
use lapwing_model::signals;

/// Longest part of an error message that is shown, in characters.
const REASON_MAX: usize = 400;

/// A device that OpenVINO lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenVinoInfo {
    /// Its name in OpenVINO, such as `CPU` or `NPU`.
    pub device: String,
    /// The processor.
    pub processor: String,
    /// OpenVINO's version.
    pub version: String,
    /// The loaded library.
    pub library: PathBuf,
}

/// The devices that OpenVINO lists on this machine.
///
/// # Errors
/// [`OpenVinoError`] without a library, or when it fails.
pub fn openvino_devices() -> Result<Vec<OpenVinoInfo>, OpenVinoError> {
    let core = Core::open()?;
    core.devices()?.into_iter().map(|device| core.describe(device)).collect()
}

/// The device of OpenVINO with this name; without one, its NPU if there is one, or else its CPU.
///
/// # Errors
/// [`OpenVinoError`] without a library or such a device, or when the library fails.
pub fn openvino_device(wanted: Option<&str>) -> Result<OpenVinoInfo, OpenVinoError> {
    Core::open()?.find(wanted)
}

/// The library that is used.
///
/// # Errors
/// [`OpenVinoError::NoLibrary`].
pub fn openvino_library() -> Result<PathBuf, OpenVinoError> {
    search::library()
}

/// The library, and its object for everything else.
#[derive(Debug)]
pub(super) struct Core {
    pub(super) loaded: Loaded,
    pub(super) handle: Handle,
}

// SAFETY: OpenVINO's core may be used by several threads at once (its documentation, "Core: thread safe").
unsafe impl Send for Core {}
// SAFETY: as above.
unsafe impl Sync for Core {}

impl Drop for Core {
    fn drop(&mut self) {
        // SAFETY: nothing that was made with the core is left: sessions own it, and requests own sessions.
        unsafe { (self.loaded.functions.ov_core_free)(self.handle) }
    }
}

impl Core {
    /// Loads the library.
    ///
    /// # Errors
    /// [`OpenVinoError`].
    pub(super) fn open() -> Result<Core, OpenVinoError> {
        signals::keep(Core::open_now)
    }

    fn open_now() -> Result<Core, OpenVinoError> {
        let mut core = Core { loaded: Loaded::open(&search::library()?)?, handle: ptr::null_mut() };
        // SAFETY: the pointer is valid for the call.
        let status = unsafe { (core.loaded.functions.ov_core_create)(&raw mut core.handle) };
        core.check("ov_core_create", status)?;
        Ok(core)
    }

    /// # Errors
    /// [`OpenVinoError::Call`] for a status other than success, with the library's message.
    pub(super) fn check(&self, call: &'static str, status: Status) -> Result<(), OpenVinoError> {
        if status == 0 {
            return Ok(());
        }
        // SAFETY: the library returns a copy of the text, or null; it is freed as text of any call.
        let message = unsafe { self.take_text((self.loaded.functions.ov_get_last_err_msg)()) };
        let lines = message.lines().filter(|line| !line.starts_with("Exception from"));
        let reason: String = lines.collect::<Vec<_>>().join(" ");
        let reason = reason.chars().take(REASON_MAX).collect();
        Err(OpenVinoError::Call { call, status, reason })
    }

    /// Copies a text and frees it.
    ///
    /// # Safety
    /// `text` is null, or a text of the library that nothing else uses.
    unsafe fn take_text(&self, text: *const c_char) -> String {
        if text.is_null() {
            return String::new();
        }
        // SAFETY: by the caller; the text ends with a zero.
        unsafe {
            let copy = CStr::from_ptr(text).to_string_lossy().into_owned();
            (self.loaded.functions.ov_free)(text);
            copy
        }
    }

    /// Names of the devices.
    pub(super) fn devices(&self) -> Result<Vec<String>, OpenVinoError> {
        // Each plug-in is loaded, and with one for GPUs all drivers of OpenCL.
        signals::keep(|| self.devices_now())
    }

    fn devices_now(&self) -> Result<Vec<String>, OpenVinoError> {
        let mut raw = RawDevices { names: ptr::null_mut(), count: 0 };
        // SAFETY: the pointers are valid for the calls; the library has filled in `count` names.
        unsafe {
            let status =
                (self.loaded.functions.ov_core_get_available_devices)(self.handle, &raw mut raw);
            self.check("ov_core_get_available_devices", status)?;
            let name = |at| CStr::from_ptr(*raw.names.add(at)).to_string_lossy().into_owned();
            let names = (0..raw.count).map(name).collect();
            (self.loaded.functions.ov_available_devices_free)(&raw mut raw);
            Ok(names)
        }
    }

    /// The device with this name; without one, the NPU if there is one, or else the CPU. For these two no other plug-in
    /// is loaded: one for GPUs loads every driver of OpenCL, any of which may fail.
    ///
    /// # Errors
    /// [`OpenVinoError::NoDevice`], or that of a call.
    pub(super) fn find(&self, wanted: Option<&str>) -> Result<OpenVinoInfo, OpenVinoError> {
        let has_npu = || {
            let found = signals::keep(|| self.property("NPU", c"AVAILABLE_DEVICES"));
            found.is_ok_and(|found| !found.is_empty())
        };
        let is = |name: &str| wanted.is_some_and(|wanted| wanted.eq_ignore_ascii_case(name));
        if (wanted.is_none() || is("NPU")) && has_npu() {
            return self.describe("NPU".to_owned());
        }
        if wanted.is_none() || is("CPU") {
            return self.describe("CPU".to_owned());
        }
        let wanted = wanted.unwrap_or_default();
        let found = self.devices()?;
        match found.iter().find(|found| found.eq_ignore_ascii_case(wanted)) {
            Some(device) => self.describe(device.clone()),
            None => {
                let (wanted, found) = (wanted.to_owned(), found.join(", "));
                Err(OpenVinoError::NoDevice { wanted, found })
            }
        }
    }

    pub(super) fn describe(&self, device: String) -> Result<OpenVinoInfo, OpenVinoError> {
        let processor = signals::keep(|| self.property(&device, c"FULL_DEVICE_NAME"))?;
        let library = self.loaded.path.clone();
        Ok(OpenVinoInfo { processor, version: self.version()?, library, device })
    }

    fn property(&self, device: &str, key: &CStr) -> Result<String, OpenVinoError> {
        let (device, mut value) = (c_string(device), ptr::null_mut());
        // SAFETY: all pointers are valid for the call, and the value belongs to the caller.
        unsafe {
            let status = (self.loaded.functions.ov_core_get_property)(
                self.handle,
                device.as_ptr(),
                key.as_ptr(),
                &raw mut value,
            );
            self.check("ov_core_get_property", status)?;
            Ok(self.take_text(value))
        }
    }

    fn version(&self) -> Result<String, OpenVinoError> {
        let mut raw = RawVersion { build_number: ptr::null(), description: ptr::null() };
        // SAFETY: the pointer is valid for the calls; the library has filled in a text.
        unsafe {
            let status = (self.loaded.functions.ov_get_openvino_version)(&raw mut raw);
            self.check("ov_get_openvino_version", status)?;
            let text = CStr::from_ptr(raw.build_number).to_string_lossy().into_owned();
            (self.loaded.functions.ov_version_free)(&raw mut raw);
            Ok(text)
        }
    }

    /// Reads a model; its constants stay where they are.
    pub(super) fn read(
        &self,
        text: &str,
        constants: Option<&Tensor<'_>>,
    ) -> Result<Model<'_>, OpenVinoError> {
        let weights = constants.map_or(ptr::null_mut(), |tensor| tensor.handle);
        let mut model = Model { core: self, handle: ptr::null_mut() };
        // SAFETY: text and tensor are valid for the call. The caller keeps the constants until the model
        // and everything compiled from it is gone.
        let status = unsafe {
            (self.loaded.functions.ov_core_read_model_from_memory_buffer)(
                self.handle,
                text.as_ptr().cast(),
                text.len(),
                weights,
                &raw mut model.handle,
            )
        };
        self.check("ov_core_read_model_from_memory_buffer", status)?;
        Ok(model)
    }

    /// A tensor over memory of the caller.
    ///
    /// # Safety
    /// `at` is valid for a tensor of that shape as long as the tensor and its copies in the library.
    pub(super) unsafe fn tensor(
        &self,
        code: ElementCode,
        dims: &[usize],
        at: *mut u8,
    ) -> Result<Tensor<'_>, OpenVinoError> {
        let dims: Vec<i64> = dims.iter().map(|dim| *dim as i64).collect();
        let shape = RawShape { rank: dims.len() as i64, dims: dims.as_ptr() };
        let mut tensor = Tensor { core: self, handle: ptr::null_mut() };
        // SAFETY: the shape is valid for the call, and the memory by the caller.
        let status = unsafe {
            (self.loaded.functions.ov_tensor_create_from_host_ptr)(
                code,
                shape,
                at.cast(),
                &raw mut tensor.handle,
            )
        };
        self.check("ov_tensor_create_from_host_ptr", status)?;
        Ok(tensor)
    }
}

/// A model that is not compiled yet.
pub(super) struct Model<'a> {
    core: &'a Core,
    pub(super) handle: Handle,
}

impl Model<'_> {
    /// The code of the element type of an input.
    pub(super) fn element(&self, input: usize) -> Result<ElementCode, OpenVinoError> {
        let (mut port, mut code) = (ptr::null_mut(), 0);
        let functions = &self.core.loaded.functions;
        // SAFETY: all pointers are valid for the calls.
        unsafe {
            let status =
                (functions.ov_model_const_input_by_index)(self.handle, input, &raw mut port);
            self.core.check("ov_model_const_input_by_index", status)?;
            let status = (functions.ov_port_get_element_type)(port, &raw mut code);
            (functions.ov_output_const_port_free)(port);
            self.core.check("ov_port_get_element_type", status)?;
        }
        Ok(code)
    }
}

impl Drop for Model<'_> {
    fn drop(&mut self) {
        // SAFETY: the handle is null or a model that nothing else uses.
        unsafe { (self.core.loaded.functions.ov_model_free)(self.handle) }
    }
}

/// Values in memory of the caller.
pub(super) struct Tensor<'a> {
    core: &'a Core,
    pub(super) handle: Handle,
}

impl Drop for Tensor<'_> {
    fn drop(&mut self) {
        // SAFETY: the handle is null or a tensor; requests that use it hold it in the library.
        unsafe { (self.core.loaded.functions.ov_tensor_free)(self.handle) }
    }
}

/// A text for the library. A zero inside, which no device name or number has, would end it.
pub(super) fn c_string(text: &str) -> CString {
    CString::new(text.replace('\0', "")).unwrap_or_default()
}
