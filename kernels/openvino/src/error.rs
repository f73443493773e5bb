//! Errors of OpenVINO.

use std::path::PathBuf;

use super::search::VARIABLE;

/// Why OpenVINO cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OpenVinoError {
    /// No library was found.
    #[error(
        "no OpenVINO library was found in {searched}; install OpenVINO (as a Python package: pip install \
         openvino), or set {VARIABLE} to libopenvino_c or its folder"
    )]
    NoLibrary {
        /// The places.
        searched: String,
    },
    /// The system cannot load the library.
    #[error("the OpenVINO library {path} cannot be loaded: {reason}")]
    Load {
        /// Its path.
        path: PathBuf,
        /// The system's message.
        reason: String,
    },
    /// The library lacks a function.
    #[error(
        "the OpenVINO library {path} has no function {function}; install OpenVINO 2023.1 or newer"
    )]
    TooOld {
        /// Its path.
        path: PathBuf,
        /// The function.
        function: &'static str,
    },
    /// OpenVINO has no such device on this machine.
    #[error(
        "OpenVINO has no device '{wanted}' on this machine (found: {found}); an Intel NPU needs its \
         driver"
    )]
    NoDevice {
        /// The device that was asked for.
        wanted: String,
        /// The devices that OpenVINO lists.
        found: String,
    },
    /// A call of the library failed.
    #[error("OpenVINO: {call} failed with status {status}: {reason}")]
    Call {
        /// The function.
        call: &'static str,
        /// Its status.
        status: i32,
        /// The library's message.
        reason: String,
    },
}
