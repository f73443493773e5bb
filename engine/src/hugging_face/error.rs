//! Errors of folders for `transformers`.

use std::path::PathBuf;

use lapwing_kernels::weights::MetadataError;

use crate::chat::ChatError;
use crate::tokenizer::{Inexpressible, TokenizerError};

/// Why no folder was written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HfError {
    /// A key of the weight file is missing or has the wrong type.
    #[error("cannot read the weight file: {0}")]
    Metadata(#[from] MetadataError),
    /// The file has no tokenizer, or one that is not supported.
    #[error(transparent)]
    Tokenizer(#[from] TokenizerError),
    /// The architecture is not supported.
    #[error(
        "architecture '{found}' (general.architecture) is not supported, so that its name in config.json is not known"
    )]
    UnknownArchitecture {
        /// Its name.
        found: String,
    },
    /// The chat template cannot be read.
    #[error(transparent)]
    Chat(#[from] ChatError),
    /// The `tokenizers` library cannot give the same ids.
    #[error("this tokenizer cannot be written for other programs: {0}")]
    Inexpressible(#[from] Inexpressible),
    /// A file exists.
    #[error("{} exists; replace it, or write to another folder", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// A file cannot be written, or the folder cannot be created.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// The file or the folder.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
}
