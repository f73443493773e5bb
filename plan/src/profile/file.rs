//! Reads and writes profiles.

use std::path::Path;

use serde_json::Value;

use super::data::{Profile, VERSION};
use super::error::ProfileError;

/// Field that tells a report of `lapwing report` from a profile.
const REPORT: &str = "lapwing_report";

impl Profile {
    /// Reads a profile from a file, or the one in a report of `lapwing report`, and checks its values.
    ///
    /// # Errors
    /// [`ProfileError`] names the invalid field.
    pub fn load(path: &Path) -> Result<Profile, ProfileError> {
        let file = |source| ProfileError::File { path: path.to_owned(), source };
        let text = std::fs::read_to_string(path).map_err(file)?;
        let format =
            |field: String, source| ProfileError::Format { path: path.to_owned(), field, source };
        // The version is read first, since other versions may have other fields.
        let any: Value = serde_json::from_str(&text).map_err(|e| format(".".to_owned(), e))?;
        let in_report = any.get(REPORT).map(|_| any.get("profile").unwrap_or(&Value::Null));
        if in_report.is_some_and(Value::is_null) {
            return Err(ProfileError::NotInReport { path: path.to_owned() });
        }
        match in_report.unwrap_or(&any).get("version").and_then(Value::as_u64) {
            Some(found) if found != u64::from(VERSION) => {
                return Err(ProfileError::Version { path: path.to_owned(), found });
            }
            _ => {}
        }
        let read = match in_report {
            Some(profile) => serde_path_to_error::deserialize(profile).map_err(|error| {
                let field = match error.path().to_string() {
                    path if path == "." => "profile".to_owned(),
                    path => format!("profile.{path}"),
                };
                (field, error.into_inner())
            }),
            None => {
                // Unlike a value, the text has the line of an error.
                let mut reader = serde_json::Deserializer::from_str(&text);
                serde_path_to_error::deserialize(&mut reader)
                    .map_err(|error| (error.path().to_string(), error.into_inner()))
            }
        };
        let profile: Profile = read.map_err(|error| format(error.0, error.1))?;
        profile.check().map_err(|error| error.in_file(path))?;
        Ok(profile)
    }

    /// The profile as JSON, as [`load`](Profile::load) reads it.
    ///
    /// # Errors
    /// An error if JSON cannot express a value, such as an infinite rate.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string_pretty(self)
    }
}
