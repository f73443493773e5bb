//! Errors of reading a metadata value.

use crate::weights::value::Value;

/// The reason why a metadata value could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MetadataError {
    /// The key is not in the file.
    #[error("metadata key '{key}' is missing")]
    Missing {
        /// Key.
        key: String,
    },
    /// The value has a different type.
    #[error("metadata key '{key}' has type {found}, but must be {expected}")]
    WrongType {
        /// Key.
        key: String,
        /// Requested type.
        expected: &'static str,
        /// Type in the file.
        found: String,
    },
    /// An integer does not fit the requested type.
    #[error("metadata key '{key}' is {found}, which does not fit in {expected}")]
    OutOfRange {
        /// Key.
        key: String,
        /// Requested type.
        expected: &'static str,
        /// Value in the file.
        found: String,
    },
    /// A string is not UTF-8.
    #[error(
        "metadata key '{key}'{} is not valid UTF-8",
        index.map(|i| format!(", string {i},")).unwrap_or_default()
    )]
    NotUtf8 {
        /// Key.
        key: String,
        /// Index of the string in an array.
        index: Option<usize>,
    },
}

/// Turns an absent value into an error.
pub(super) fn required<T>(key: &str, value: Option<T>) -> Result<T, MetadataError> {
    value.ok_or_else(|| MetadataError::Missing { key: key.to_owned() })
}

/// Error about a value of a different type.
pub(super) fn wrong(key: &str, expected: &'static str, found: &Value) -> MetadataError {
    MetadataError::WrongType { key: key.to_owned(), expected, found: found.type_name() }
}

/// Converts an integer, or fails if it does not fit.
pub(super) fn integer<T: TryFrom<i128>>(
    key: &str,
    expected: &'static str,
    value: i128,
) -> Result<T, MetadataError> {
    T::try_from(value).map_err(|_| MetadataError::OutOfRange {
        key: key.to_owned(),
        expected,
        found: value.to_string(),
    })
}
