//! Why the parts of a split model do not fit together.

use std::path::PathBuf;

/// The reason why the parts of a split model do not belong together.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SplitFault {
    /// The file name does not follow the naming scheme, so the other parts cannot be found.
    #[error(
        "split.count is {parts}, but {} is not named …-{:05}-of-{parts:05}.gguf, so its other parts cannot be found; restore its original name",
        path.display(), no + 1
    )]
    Name {
        /// File.
        path: PathBuf,
        /// `split.no`.
        no: u32,
        /// `split.count`.
        parts: u32,
    },
    /// A key that describes the split is invalid.
    #[error(
        "{key} of {} is {found}, but must be {expected}; the file is damaged, download it again",
        path.display()
    )]
    Number {
        /// Metadata key.
        key: &'static str,
        /// File.
        path: PathBuf,
        /// Value in the file, as text.
        found: String,
        /// Accepted values, as text.
        expected: String,
    },
    /// A key of a part has a value that does not fit the other parts.
    #[error(
        "part {part} of {parts}: {key} of {} is {found}, but must be {expected}; the files are not \
         parts of the same model, download all parts again into one folder",
        path.display()
    )]
    Key {
        /// Number of the part, from 1.
        part: u32,
        /// Number of parts.
        parts: u32,
        /// Metadata key.
        key: &'static str,
        /// File.
        path: PathBuf,
        /// Value in the file, as text.
        found: String,
        /// Expected value, as text.
        expected: String,
    },
    /// Two parts contain a tensor of the same name.
    #[error("tensor '{tensor}' is in both {} and {}; the files are not parts of the same model", first.display(), second.display())]
    DuplicateTensor {
        /// Tensor name.
        tensor: String,
        /// First file.
        first: PathBuf,
        /// Second file.
        second: PathBuf,
    },
}
