//! Reads a report.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use lapwing_engine::profile::ProfileError;
use serde_json::Value;

use super::content::{Report, VERSION};

/// Most bytes of a report. One of three devices has less than 1 MB.
const BYTES_MAX: u64 = 64 << 20;

/// Why a file is no report that can be shown.
#[derive(Debug, thiserror::Error)]
pub(super) enum ReportError {
    /// The file cannot be read.
    #[error("cannot read the report {}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The file is too large.
    #[error("{} is no report: it has more than {} MiB", path.display(), BYTES_MAX >> 20)]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
    /// The file has another form.
    #[error("{} is no report of `lapwing report`", path.display())]
    NoReport {
        /// The file.
        path: PathBuf,
    },
    /// The report has another version.
    #[error(
        "the report {} has version {found}, but this program reads version {VERSION}; show it with the \
         version of the program that made it", path.display()
    )]
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: String,
    },
    /// A field is wrong.
    #[error("the report {} is damaged: field '{field}': {source}", path.display())]
    Field {
        /// The file.
        path: PathBuf,
        /// Path of the field.
        field: String,
        /// What is wrong.
        source: serde_json::Error,
    },
    /// Its profile is wrong.
    #[error("the report {} is damaged: {source}", path.display())]
    Profile {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: ProfileError,
    },
}

impl Report {
    /// Reads a report and checks it.
    ///
    /// # Errors
    /// [`ReportError`].
    pub(super) fn load(path: &Path) -> Result<Report, ReportError> {
        let path = || path.to_owned();
        let file = |source| ReportError::File { path: path(), source };
        let mut text = String::new();
        let read =
            File::open(path()).and_then(|file| file.take(BYTES_MAX + 1).read_to_string(&mut text));
        match read {
            Ok(bytes) if bytes as u64 > BYTES_MAX => {
                return Err(ReportError::TooLarge { path: path() });
            }
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                return Err(ReportError::NoReport { path: path() });
            }
            Err(error) => return Err(file(error)),
        }
        // The version is read first, since other versions may have other fields.
        let any: Option<Value> = serde_json::from_str(&text).ok();
        let version = any.as_ref().and_then(|any| any.get("lapwing_report"));
        let version = version.ok_or_else(|| ReportError::NoReport { path: path() })?;
        if version.as_u64() != Some(VERSION) {
            return Err(ReportError::Version { path: path(), found: version.to_string() });
        }
        let mut reader = serde_json::Deserializer::from_str(&text);
        let report: Report = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
            let field = error.path().to_string();
            ReportError::Field { path: path(), field, source: error.into_inner() }
        })?;
        let checked = report.profile.as_ref().map_or(Ok(()), |profile| profile.check());
        checked.map_err(|source| ReportError::Profile { path: path(), source })?;
        Ok(report)
    }
}
