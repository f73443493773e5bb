//! Why a profile cannot be used.

use std::io;
use std::path::PathBuf;

use super::VERSION;

/// Why a profile cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProfileError {
    /// The file cannot be read or written.
    #[error("profile {}: {source}; measure one with `lapwing profile`", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What went wrong.
        source: io::Error,
    },
    /// The text is no profile.
    #[error(
        "profile {}: field '{field}': {source}; measure it again with `lapwing profile`", path.display()
    )]
    Format {
        /// The file.
        path: PathBuf,
        /// Path of the field, `.` for the whole.
        field: String,
        /// What is wrong.
        source: serde_json::Error,
    },
    /// The file was written by another version of this program.
    #[error(
        "profile {}: version is {found}, but this program reads {VERSION}; measure it again with `lapwing profile`", path.display()
    )]
    Version {
        /// The file.
        path: PathBuf,
        /// Version found.
        found: u64,
    },
    /// A value makes no sense.
    #[error(
        "profile {}field '{field}' is {found}, but {expected}; measure it again with `lapwing profile`",
        of(file)
    )]
    Value {
        /// The file, unless it was made in this program.
        file: Option<PathBuf>,
        /// Path of the field.
        field: String,
        /// Value found.
        found: String,
        /// What would be accepted.
        expected: &'static str,
    },
    /// It is of another machine, model or set of devices.
    #[error(
        "the profile's {field} is '{found}', but here it is '{here}'; measure again with `lapwing profile`"
    )]
    Other {
        /// What differs.
        field: String,
        /// Value in the profile.
        found: String,
        /// Value here.
        here: String,
    },
}

impl ProfileError {
    /// Names the file whose values are at fault.
    pub(super) fn in_file(self, path: &std::path::Path) -> ProfileError {
        match self {
            ProfileError::Value { field, found, expected, .. } => {
                ProfileError::Value { file: Some(path.to_owned()), field, found, expected }
            }
            other => other,
        }
    }
}

fn of(file: &Option<PathBuf>) -> String {
    file.as_ref().map_or_else(String::new, |path| format!("{}: ", path.display()))
}
