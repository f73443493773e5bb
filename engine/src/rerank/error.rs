//! Why documents cannot be ranked.

use std::path::PathBuf;

use lapwing_kernels::cpu::HeadError;
use lapwing_kernels::weights::MetadataError;

/// Why documents cannot be ranked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RerankError {
    /// The model has no head that makes scores.
    #[error(
        "the model {} is no reranker: its file has neither `cls.weight` nor `cls.output.weight`; use one such as bge-reranker or Qwen3-Reranker",
        path.display()
    )]
    NoHead {
        /// The model's file.
        path: PathBuf,
    },
    /// The file does not say how a query and a document become one text.
    #[error(
        "the model {} says nothing that stands between a query and a document: its file has no template `rerank`, and requests no end of a text and no separator",
        path.display()
    )]
    NoPairs {
        /// The model's file.
        path: PathBuf,
    },
    /// The file's template of a pair lacks the place of a text.
    #[error("the model's template `{key}` has no `{place}`; the file is damaged")]
    Template {
        /// Key of the template.
        key: &'static str,
        /// What is missing.
        place: &'static str,
    },
    /// The file's template of a pair has the wrong type.
    #[error(transparent)]
    Metadata(#[from] MetadataError),
    /// The head cannot be read.
    #[error(transparent)]
    Head(#[from] HeadError),
}
