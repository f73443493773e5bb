//! Finds OpenVINO's C library.

use std::path::PathBuf;

use super::error::OpenVinoError;
use lapwing_npu::library_path::{Wanted, entries, variable};

/// The variable with the path of the library or of its folder.
pub(super) const VARIABLE: &str = "LAPWING_OPENVINO";

/// Beginning of the library's file name.
#[cfg(windows)]
const FILE: &str = "openvino_c.dll";
#[cfg(target_os = "macos")]
const FILE: &str = "libopenvino_c";
#[cfg(not(any(windows, target_os = "macos")))]
const FILE: &str = "libopenvino_c.so";

/// The path of the library, also from Intel's own folders.
///
/// # Errors
/// [`OpenVinoError::NoLibrary`] with the places.
pub(super) fn library() -> Result<PathBuf, OpenVinoError> {
    let installed = variable("INTEL_OPENVINO_DIR").map(PathBuf::from);
    let roots = installed.into_iter().chain([PathBuf::from("/opt/intel/openvino")]);
    let wanted = Wanted {
        variable: VARIABLE,
        file: FILE,
        package: "openvino/libs",
        folders: roots.flat_map(|root| entries(&root.join("runtime/lib"), "")).collect(),
        others: "/opt/intel/openvino",
    };
    wanted.find().map_err(|searched| OpenVinoError::NoLibrary { searched })
}
