//! Model architectures as data: a row in a table says what an architecture does differently,
//! and one builder turns a weight file's metadata into an op graph.

mod build;
mod config;
pub mod shape;
mod spec;
mod tensors;

pub use config::{Layers, ModelConfig};
pub use spec::{ArchSpec, supported};

use crate::graph::Graph;
use crate::weights::{Gguf, MetadataError, WeightFile};

/// A model's hyper-parameters and its op graph.
#[derive(Clone, Debug)]
pub struct Model {
    /// Hyper-parameters.
    pub config: ModelConfig,
    /// Ops, with the names and shapes of their weights.
    pub graph: Graph,
}

impl Model {
    /// Builds the graph of the architecture that the file names, and checks the shape of every
    /// tensor against it. Reads metadata and the tensor table only.
    ///
    /// # Errors
    /// [`ModelError`] when the architecture is not supported, a key is missing or makes no
    /// sense, or a tensor is missing, has another shape, or belongs to no op.
    pub fn from_weights(file: &WeightFile) -> Result<Model, ModelError> {
        let config = ModelConfig::from_metadata(file.metadata())?;
        let graph = build::build(&config, file)?;
        Ok(Model { config, graph })
    }

    /// As [`from_weights`](Model::from_weights), from what stands in front of a file's data: such
    /// a model can be planned and simulated, not run.
    ///
    /// # Errors
    /// As [`from_weights`](Model::from_weights).
    pub fn from_header(gguf: &Gguf) -> Result<Model, ModelError> {
        let config = ModelConfig::from_metadata(&gguf.metadata)?;
        let graph = build::build(&config, &tensors::Header::new(gguf))?;
        Ok(Model { config, graph })
    }
}

/// Why a weight file cannot be run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// The architecture is not in the table.
    #[error("architecture '{found}' is not supported; supported are: {}", supported().join(", "))]
    UnknownArchitecture {
        /// Value of `general.architecture`.
        found: String,
    },
    /// A metadata key is missing or has another type.
    #[error("{source} (needed to build a model; supported architectures: {})", supported().join(", "))]
    Metadata {
        /// What is wrong with the key.
        #[from]
        source: MetadataError,
    },
    /// A metadata value makes no sense.
    #[error("metadata key '{key}' is {found}, but {expected}")]
    BadValue {
        /// Key.
        key: String,
        /// Value found.
        found: String,
        /// What would be accepted.
        expected: String,
    },
    /// A tensor is not in the file.
    #[error("tensor '{name}' of the {arch} architecture is missing; the file is incomplete")]
    MissingTensor {
        /// Tensor name.
        name: String,
        /// Architecture.
        arch: &'static str,
    },
    /// A tensor has another shape than the metadata says.
    #[error(
        "tensor '{name}' has {found} values as [rows, columns], but the metadata asks for {expected}"
    )]
    TensorShape {
        /// Tensor name.
        name: String,
        /// Shape in the file.
        found: String,
        /// Shape by the metadata.
        expected: String,
    },
    /// A tensor that no op reads: running without it would give other results.
    #[error(
        "tensor '{name}' is not used by the {arch} architecture as supported here; this variant of the model cannot be run ({count} such tensors)"
    )]
    UnusedTensor {
        /// First such tensor.
        name: String,
        /// Architecture.
        arch: &'static str,
        /// How many there are.
        count: usize,
    },
}
