//! Reads and writes profiles.

use std::path::Path;

use super::data::{Profile, VERSION};
use super::error::ProfileError;

impl Profile {
    /// Reads a profile from a file and checks its values.
    ///
    /// # Errors
    /// [`ProfileError`] names the invalid field.
    pub fn load(path: &Path) -> Result<Profile, ProfileError> {
        let file = |source| ProfileError::File { path: path.to_owned(), source };
        let text = std::fs::read_to_string(path).map_err(file)?;
        let format =
            |field: String, source| ProfileError::Format { path: path.to_owned(), field, source };
        // The version is read first, since other versions may have other fields.
        let any: serde_json::Value =
            serde_json::from_str(&text).map_err(|e| format(".".to_owned(), e))?;
        match any.get("version").and_then(serde_json::Value::as_u64) {
            Some(found) if found != u64::from(VERSION) => {
                return Err(ProfileError::Version { path: path.to_owned(), found });
            }
            _ => {}
        }
        let mut reader = serde_json::Deserializer::from_str(&text);
        let profile: Profile = serde_path_to_error::deserialize(&mut reader)
            .map_err(|error| format(error.path().to_string(), error.into_inner()))?;
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
