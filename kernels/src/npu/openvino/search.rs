//! Finds OpenVINO's C library.

use std::fs;
use std::path::{Path, PathBuf};

use super::error::OpenVinoError;

/// The variable with the path of the library or of its folder.
pub(super) const VARIABLE: &str = "LAPWING_OPENVINO";

/// Beginning of the library's file name, with or without a version after its ending.
#[cfg(windows)]
const FILE: &str = "openvino_c.dll";
#[cfg(target_os = "macos")]
const FILE: &str = "libopenvino_c";
#[cfg(not(any(windows, target_os = "macos")))]
const FILE: &str = "libopenvino_c.so";

/// The path of the library: from the variable, or else from the Python packages of an active virtual
/// environment, of the user and of the system, and from Intel's own folders.
///
/// # Errors
/// [`OpenVinoError::NoLibrary`] with the places.
pub(super) fn library() -> Result<PathBuf, OpenVinoError> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    if let Some(path) = variable(VARIABLE).map(PathBuf::from) {
        let found =
            if path.is_dir() { in_folder(&path) } else { path.is_file().then(|| path.clone()) };
        let searched = format!("{} (of {VARIABLE})", path.display());
        return found.ok_or(OpenVinoError::NoLibrary { searched });
    }
    let environment = variable("VIRTUAL_ENV").map(PathBuf::from);
    let user = std::env::home_dir().map(|home| home.join(".local"));
    let roots: Vec<PathBuf> = environment
        .into_iter()
        .chain(user)
        .chain(["/usr/local", "/usr"].map(PathBuf::from))
        .collect();
    let packages = roots.iter().flat_map(|root| python_packages(root));
    let intel = [
        variable("INTEL_OPENVINO_DIR").map(PathBuf::from),
        Some(PathBuf::from("/opt/intel/openvino")),
    ];
    let intel = intel.into_iter().flatten().flat_map(|root| runtime_folders(&root));
    packages.chain(intel).find_map(|folder| in_folder(&folder)).ok_or_else(|| {
        let roots: Vec<String> = roots.iter().map(|root| root.display().to_string()).collect();
        OpenVinoError::NoLibrary {
            searched: format!(
                "the Python packages of {}, /opt/intel/openvino and the variable {VARIABLE}",
                roots.join(", ")
            ),
        }
    })
}

/// `openvino/libs` in each folder of Python packages below a root.
fn python_packages(root: &Path) -> Vec<PathBuf> {
    let mut folders = Vec::new();
    for lib in ["lib", "lib64"] {
        for python in entries(&root.join(lib), "python3") {
            for packages in ["site-packages", "dist-packages"] {
                folders.push(python.join(packages).join("openvino/libs"));
            }
        }
    }
    folders
}

/// The folders of libraries below an installation of Intel's own archives.
fn runtime_folders(root: &Path) -> Vec<PathBuf> {
    entries(&root.join("runtime/lib"), "")
}

/// The entries of a folder whose names begin like this, the last one first, so that a newer version
/// comes before an older one.
fn entries(folder: &Path, prefix: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let begins = |entry: &fs::DirEntry| entry.file_name().to_string_lossy().starts_with(prefix);
    let mut paths: Vec<PathBuf> = entries.filter(begins).map(|entry| entry.path()).collect();
    paths.sort_unstable();
    paths.reverse();
    paths
}

fn in_folder(folder: &Path) -> Option<PathBuf> {
    entries(folder, FILE).into_iter().find(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_library_of_a_package_is_found_and_nothing_else() {
        let root = tempfile::tempdir().expect("a folder");
        assert_eq!(in_folder(root.path()), None);
        let libs = root.path().join("lib/python3.11/site-packages/openvino/libs");
        fs::create_dir_all(&libs).expect("folders");
        for name in ["libopenvino.so.2641", "readme"] {
            fs::write(libs.join(name), "").expect("a file");
        }
        let found = |root: &Path| python_packages(root).iter().find_map(|folder| in_folder(folder));
        assert_eq!(found(root.path()), None);
        for name in [format!("{FILE}.2400"), format!("{FILE}.2641")] {
            fs::write(libs.join(name), "").expect("a file");
        }
        assert_eq!(found(root.path()), Some(libs.join(format!("{FILE}.2641"))));
    }
}
