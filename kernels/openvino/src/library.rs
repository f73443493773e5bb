//! The part of OpenVINO's C interface that is used (`openvino/c/openvino.h`), loaded at run time.
#![expect(unsafe_code, reason = "calls a C library")]

use std::error::Error;
use std::ffi::{c_char, c_void};
use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};

use libloading::Library;

use super::error::OpenVinoError;

/// Result of a call; 0 for success.
pub(super) type Status = i32;

/// Code of an element type. The codes differ between releases.
pub(super) type ElementCode = u32;

/// An object of the library.
pub(super) type Handle = *mut c_void;

/// `ov_shape_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct RawShape {
    pub(super) rank: i64,
    pub(super) dims: *const i64,
}

/// `ov_version_t`.
#[repr(C)]
pub(super) struct RawVersion {
    pub(super) build_number: *const c_char,
    pub(super) description: *const c_char,
}

/// `ov_available_devices_t`.
#[repr(C)]
pub(super) struct RawDevices {
    pub(super) names: *mut *mut c_char,
    pub(super) count: usize,
}

/// `ov_callback_t`.
#[repr(C)]
pub(super) struct RawCallback {
    pub(super) function: unsafe extern "C" fn(*mut c_void),
    pub(super) argument: *mut c_void,
}

macro_rules! functions {
    ($($name:ident: $signature:ty;)*) => {
        /// The functions, named as in the library.
        #[derive(Debug)]
        pub(super) struct Functions {
            $(pub(super) $name: $signature,)*
        }

        impl Functions {
            /// # Errors
            /// The name of a function that the library lacks.
            fn of(library: &Library) -> Result<Functions, &'static str> {
                Ok(Functions {
                    // SAFETY: each type is the declaration of the function in the library's headers, which
                    // have been the same since they were introduced.
                    $($name: unsafe { *library.get::<$signature>(stringify!($name)).map_err(|_| stringify!($name))? },)*
                })
            }
        }
    };
}

functions! {
    ov_get_openvino_version: unsafe extern "C" fn(*mut RawVersion) -> Status;
    ov_version_free: unsafe extern "C" fn(*mut RawVersion);
    ov_get_last_err_msg: unsafe extern "C" fn() -> *const c_char;
    ov_free: unsafe extern "C" fn(*const c_char);
    ov_core_create: unsafe extern "C" fn(*mut Handle) -> Status;
    ov_core_free: unsafe extern "C" fn(Handle);
    ov_core_get_available_devices: unsafe extern "C" fn(Handle, *mut RawDevices) -> Status;
    ov_available_devices_free: unsafe extern "C" fn(*mut RawDevices);
    ov_core_get_property:
        unsafe extern "C" fn(Handle, *const c_char, *const c_char, *mut *mut c_char) -> Status;
    ov_core_read_model_from_memory_buffer:
        unsafe extern "C" fn(Handle, *const c_char, usize, Handle, *mut Handle) -> Status;
    ov_model_free: unsafe extern "C" fn(Handle);
    ov_model_const_input_by_index: unsafe extern "C" fn(Handle, usize, *mut Handle) -> Status;
    ov_port_get_element_type: unsafe extern "C" fn(Handle, *mut ElementCode) -> Status;
    ov_output_const_port_free: unsafe extern "C" fn(Handle);
    ov_core_compile_model:
        unsafe extern "C" fn(Handle, Handle, *const c_char, usize, *mut Handle, ...) -> Status;
    ov_core_set_property: unsafe extern "C" fn(Handle, *const c_char, ...) -> Status;
    ov_core_import_model:
        unsafe extern "C" fn(Handle, *const c_char, usize, *const c_char, *mut Handle) -> Status;
    ov_compiled_model_export_model: unsafe extern "C" fn(Handle, *const c_char) -> Status;
    ov_compiled_model_free: unsafe extern "C" fn(Handle);
    ov_compiled_model_create_infer_request: unsafe extern "C" fn(Handle, *mut Handle) -> Status;
    ov_infer_request_free: unsafe extern "C" fn(Handle);
    ov_infer_request_set_input_tensor_by_index: unsafe extern "C" fn(Handle, usize, Handle) -> Status;
    ov_infer_request_set_output_tensor_by_index: unsafe extern "C" fn(Handle, usize, Handle) -> Status;
    ov_infer_request_infer: unsafe extern "C" fn(Handle) -> Status;
    ov_infer_request_set_callback: unsafe extern "C" fn(Handle, *const RawCallback) -> Status;
    ov_infer_request_start_async: unsafe extern "C" fn(Handle) -> Status;
    ov_infer_request_wait: unsafe extern "C" fn(Handle) -> Status;
    ov_tensor_create_from_host_ptr:
        unsafe extern "C" fn(ElementCode, RawShape, *mut c_void, *mut Handle) -> Status;
    ov_tensor_get_byte_size: unsafe extern "C" fn(Handle, *mut usize) -> Status;
    ov_tensor_free: unsafe extern "C" fn(Handle);
}

/// The loaded library. It stays loaded: its threads may outlive everything else.
#[derive(Debug)]
pub(super) struct Loaded {
    pub(super) functions: Functions,
    pub(super) path: PathBuf,
    _library: ManuallyDrop<Library>,
}

impl Loaded {
    /// Loads the library.
    ///
    /// # Errors
    /// [`OpenVinoError::Load`] and [`OpenVinoError::TooOld`].
    pub(super) fn open(path: &Path) -> Result<Loaded, OpenVinoError> {
        // SAFETY: OpenVINO's libraries only register themselves when they are loaded.
        let library = unsafe { Library::new(path) }.map_err(|error| {
            // The system's message is the cause of the error.
            let reason = error.source().map_or_else(|| error.to_string(), ToString::to_string);
            OpenVinoError::Load { path: path.to_owned(), reason }
        })?;
        let library = ManuallyDrop::new(library);
        let functions = Functions::of(&library)
            .map_err(|function| OpenVinoError::TooOld { path: path.to_owned(), function })?;
        Ok(Loaded { functions, path: path.to_owned(), _library: library })
    }
}
