//! The files that name the drivers of OpenCL to a loader.

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// Where loaders look for such files.
const FOLDER: &str = "/etc/OpenCL/vendors";

/// A driver that a file names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Vendor {
    /// The file; `None` for a library that a variable names.
    file: Option<PathBuf>,
    /// The driver's library, as it is named.
    library: String,
}

impl fmt::Display for Vendor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.file {
            Some(file) => write!(f, "the OpenCL driver {} ({})", file.display(), self.library),
            None => write!(f, "the OpenCL driver {}", self.library),
        }
    }
}

impl Vendor {
    /// The driver of a file; `None` if it names none.
    fn of_file(file: &Path) -> Option<Vendor> {
        let text = std::fs::read_to_string(file).ok()?;
        let library = text.lines().next().map(str::trim).filter(|line| !line.is_empty())?;
        Some(Vendor { file: Some(file.to_owned()), library: library.to_owned() })
    }
}

/// The drivers that a loader finds: those of OCL_ICD_VENDORS, which may be a folder, a file or a library, or else of the
/// system's folder; and the libraries of OCL_ICD_FILENAMES.
pub(super) fn all() -> Vec<Vendor> {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    let named = variable("OCL_ICD_VENDORS").or_else(|| variable("OPENCL_VENDOR_PATH"));
    let place = named.map_or_else(|| PathBuf::from(FOLDER), PathBuf::from);
    let library = |path: &Path| Vendor { file: None, library: path.display().to_string() };
    let mut all = if place.is_dir() {
        let entries = std::fs::read_dir(&place).into_iter().flatten().flatten();
        let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
        files.retain(|file| file.extension().is_some_and(|extension| extension == "icd"));
        files.sort_unstable();
        files.iter().filter_map(|file| Vendor::of_file(file)).collect()
    } else if place.extension().is_some_and(|extension| extension == "icd") {
        Vendor::of_file(&place).into_iter().collect()
    } else {
        vec![library(&place)]
    };
    let more = variable("OCL_ICD_FILENAMES").unwrap_or_default();
    all.extend(
        std::env::split_paths(&more)
            .filter(|path| !path.as_os_str().is_empty())
            .map(|path| library(&path)),
    );
    all
}

/// A folder with the files of some drivers.
#[derive(Debug)]
pub(super) struct Vendors(TempDir);

impl Vendors {
    /// A folder with the files of these.
    pub(super) fn of<'a>(vendors: impl IntoIterator<Item = &'a Vendor>) -> io::Result<Vendors> {
        let folder = tempfile::tempdir()?;
        for (at, vendor) in vendors.into_iter().enumerate() {
            let file = folder.path().join(format!("{at:03}.icd"));
            std::fs::write(file, format!("{}\n", vendor.library))?;
        }
        Ok(Vendors(folder))
    }

    /// The variables with which a loader finds these drivers and no other.
    pub(super) fn variables(&self) -> [(&'static str, Option<OsString>); 3] {
        let folder = self.0.path().as_os_str().to_owned();
        [
            ("OCL_ICD_VENDORS", Some(folder)),
            ("OPENCL_VENDOR_PATH", None),
            ("OCL_ICD_FILENAMES", None),
        ]
    }
}
