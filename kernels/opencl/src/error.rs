//! Errors of OpenCL.

use lapwing_model::device::DeviceError;

/// Why an OpenCL device cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OpenClError {
    /// The system has no OpenCL library.
    #[error(
        "no OpenCL library was found; install the driver of the device and an OpenCL loader \
         (Debian: ocl-icd-libopencl1), or set OPENCL_DYLIB_PATH to the library's path"
    )]
    NoLibrary,
    /// The user names libraries, and none can be opened.
    #[error(
        "OPENCL_DYLIB_PATH names no library that can be opened ({tried}); set it to the path of an OpenCL library, or \
         to several with ';' between them, or remove it to use the system's library"
    )]
    NamedLibrary {
        /// Each path, and why it was not opened.
        tried: String,
    },
    /// The library has no driver.
    #[error(
        "the OpenCL library lists no device; install the driver of the device (for tests on a CPU, \
         Debian: pocl-opencl-icd)"
    )]
    NoDevice,
    /// No device has that number or name.
    #[error("no OpenCL device matches '{wanted}' (found: {found}); `lapwing devices` lists them")]
    Unknown {
        /// The number or part of a name that was asked for.
        wanted: String,
        /// Number and name of each device.
        found: String,
    },
    /// The device lacks something that every kernel needs.
    #[error("OpenCL device '{device}' cannot be used: {reason}")]
    Unusable {
        /// Name of the device.
        device: String,
        /// What it lacks.
        reason: String,
    },
    /// A call of the library failed.
    #[error("OpenCL device '{device}': {call} failed with {name} ({code})")]
    Call {
        /// Name of the device.
        device: String,
        /// The function.
        call: &'static str,
        /// The error code of the OpenCL specification.
        code: i32,
        /// Its name.
        name: &'static str,
    },
    /// The driver's compiler rejects a program.
    #[error(
        "OpenCL device '{device}': the driver does not compile '{program}'; update the driver or \
         choose another device. Its log:\n{log}"
    )]
    Build {
        /// Name of the device.
        device: String,
        /// The program.
        program: String,
        /// The compiler's log, shortened.
        log: String,
    },
    /// The device has not enough memory.
    #[error(
        "OpenCL device '{device}' has no memory of {bytes} bytes for {what}; run fewer layers on it, \
         or use a smaller context or model"
    )]
    Memory {
        /// Name of the device.
        device: String,
        /// What the memory is for.
        what: String,
        /// Bytes asked for.
        bytes: usize,
    },
}

impl OpenClError {
    /// The error of a run on the device `device` of an engine.
    pub(super) fn of_run(&self, device: &str) -> DeviceError {
        DeviceError::Failed { device: device.to_owned(), reason: self.to_string() }
    }
}
