//! A driver that fails.

use std::fmt;

/// A driver that failed while its devices were listed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DriverFault {
    /// What `lapwing list-drivers` calls its kind.
    pub kind: &'static str,
    /// The driver, with the path of its library or of the file that names it.
    pub driver: String,
    /// What happened, as in `ended its process with SIGABRT`.
    pub what: String,
    /// The last line that it wrote on stderr.
    pub said: Option<String>,
    /// Whether it is one of several that a loader loads.
    pub(super) is_of_file: bool,
}

impl fmt::Display for DriverFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} while its devices were listed", self.driver, self.what)?;
        if let Some(said) = &self.said {
            write!(f, " (it wrote: {said})")?;
        }
        f.write_str("; repair or remove it")?;
        f.write_str(match (self.kind, self.is_of_file) {
            ("opencl", true) => {
                ", or set OCL_ICD_VENDORS to a folder with the .icd files of the other drivers"
            }
            ("opencl", false) => ", or set OPENCL_DYLIB_PATH to another library",
            _ => "",
        })
    }
}

impl std::error::Error for DriverFault {}
