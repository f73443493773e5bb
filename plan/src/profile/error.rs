//! Errors of profiles.

use std::io;
use std::path::PathBuf;

use super::data::VERSION;

/// Why a profile cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProfileError {
    /// The file cannot be read or written.
    #[error("profile {}: {source}; measure one with `lapwing profile`", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Cause.
        source: io::Error,
    },
    /// The text is not a profile.
    #[error(
        "profile {}: field '{field}': {source}; measure it again with `lapwing profile`", path.display()
    )]
    Format {
        /// The file.
        path: PathBuf,
        /// Path of the field; `.` for the whole file.
        field: String,
        /// Cause.
        source: serde_json::Error,
    },
    /// The file has another format version.
    #[error(
        "profile {}: version is {found}, but this program reads version {VERSION}; measure it again with `lapwing profile`", path.display()
    )]
    Version {
        /// The file.
        path: PathBuf,
        /// Version found.
        found: u64,
    },
    /// The file is a report of `lapwing report` that has no profile.
    #[error(
        "report {}: it has no profile, because the devices could not be measured (`lapwing report --show` \
         says why); measure one with `lapwing profile`", path.display()
    )]
    NotInReport {
        /// The file.
        path: PathBuf,
    },
    /// A value is out of range.
    #[error(
        "profile {}field '{field}' is {found}, but {expected}; measure it again with `lapwing profile`",
        of(file)
    )]
    Value {
        /// The file; `None` for a profile that was not read from a file.
        file: Option<PathBuf>,
        /// Path of the field.
        field: String,
        /// Value found.
        found: String,
        /// Valid values, as in "must be …".
        expected: &'static str,
    },
    /// The profile was measured by another program version, on another machine, or for another model or
    /// set of devices.
    #[error(
        "the profile was measured with {field} '{found}', but here it is '{here}'; measure again with `lapwing profile`"
    )]
    Mismatch {
        /// Field that differs.
        field: String,
        /// Value in the profile.
        found: String,
        /// Value of this engine.
        here: String,
    },
}

impl ProfileError {
    /// Adds the path of the file to a value error.
    pub(super) fn in_file(self, path: &std::path::Path) -> ProfileError {
        match self {
            ProfileError::Value { field, found, expected, .. } => {
                ProfileError::Value { file: Some(path.to_owned()), field, found, expected }
            }
            other => other,
        }
    }
}

/// The path with a colon, or nothing.
fn of(file: &Option<PathBuf>) -> String {
    file.as_ref().map_or_else(String::new, |path| format!("{}: ", path.display()))
}
