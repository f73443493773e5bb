//! Models: each architecture is one file over a builder that turns a weight file's metadata into an op graph.

mod architecture;
mod architectures;
mod build;
mod config;
mod experts;
mod family;
mod head;
mod keys;
mod layer;
mod layers;
mod model_part;
mod norm_kind;
mod other_keys;
mod positions;
pub mod shape;
mod tensors;
mod vocabulary;

use std::ops::Range;

pub use architecture::Architecture;
pub use architectures::supported;
pub use config::ModelConfig;
pub use experts::{ExpertsConfig, SharedExpert};
pub use head::{Head, HeadActivation, HeadInput, HeadLayer, HeadNorm};
pub use layer::{LatentRanks, LayerAttention, LayerHeads, RecurrentSizes, SinkLayers, StepNorms};
pub use model_part::ModelPart;
pub use norm_kind::NormKind;

use crate::formats::DType;
use crate::graph::Graph;
use crate::kv::{KvSharing, KvSharingError};
use crate::weights::{Gguf, Metadata, MetadataError, WeightFile};
use tensors::Tensors;

/// A model's hyper-parameters, its op graph and its head.
#[derive(Clone, Debug)]
pub struct Model {
    /// Hyper-parameters.
    pub config: ModelConfig,
    /// Ops, with the names and shapes of their weights.
    pub graph: Graph,
    /// What makes scores of the hidden states, if the model is a reranker.
    pub rank: Option<Head>,
    /// What makes an embedding of the mean of the hidden states, if that is not the embedding.
    pub projection: Option<Head>,
}

impl Model {
    /// Builds the graph of the architecture named in the file, and checks the shape of every tensor
    /// against it. Only reads metadata and the tensor table.
    ///
    /// # Errors
    /// [`ModelError`] if the architecture is not supported, a key is missing or invalid, or a
    /// tensor is missing, has a different shape, or is not used by any op.
    pub fn from_weights(file: &WeightFile) -> Result<Model, ModelError> {
        Model::for_context(file, None)
    }

    /// As [`from_weights`](Model::from_weights), for sequences of up to `context` tokens, or as many as in the training.
    /// Models with two sets of rotary frequencies (LongRoPE) have that for long sequences if they may be longer than in the training
    /// before it was stretched.
    ///
    /// # Errors
    /// As [`from_weights`](Model::from_weights).
    pub fn for_context(file: &WeightFile, context: Option<usize>) -> Result<Model, ModelError> {
        Model::part(file, context, ModelPart::Whole)
    }

    /// As [`for_context`](Model::for_context), for a part of a file.
    ///
    /// # Errors
    /// As [`from_weights`](Model::from_weights), and [`ModelError::NoPredictor`].
    pub fn part(
        file: &WeightFile,
        context: Option<usize>,
        part: ModelPart,
    ) -> Result<Model, ModelError> {
        Model::of(file.metadata(), file, context, part)
    }

    /// As [`from_weights`](Model::from_weights), from metadata and tensor table alone. Such a model
    /// can be planned and simulated, but not run.
    ///
    /// # Errors
    /// As [`from_weights`](Model::from_weights).
    pub fn from_header(gguf: &Gguf) -> Result<Model, ModelError> {
        Model::part_of_header(gguf, ModelPart::Whole)
    }

    /// As [`from_header`](Model::from_header), for a part of a file.
    ///
    /// # Errors
    /// As [`part`](Model::part).
    pub fn part_of_header(gguf: &Gguf, part: ModelPart) -> Result<Model, ModelError> {
        let tensors = tensors::Header::new(gguf);
        Model::of(&gguf.metadata, &tensors, None, part)
    }

    /// A part of a model with that metadata.
    fn of(
        metadata: &Metadata,
        tensors: &dyn Tensors,
        context: Option<usize>,
        part: ModelPart,
    ) -> Result<Model, ModelError> {
        let config = match part {
            ModelPart::Whole | ModelPart::WithRows => ModelConfig::from_metadata(metadata)?,
            ModelPart::Predictor => ModelConfig::of_predictor(metadata, tensors)?,
        };
        let tokens = vocabulary::tokens(metadata, config.arch.name());
        let context = context.map_or(config.context, |context| context.min(config.context));
        let model = build::build(config, tensors, build::Wanted { part, tokens, context })?;
        vocabulary::check(metadata, &model.graph)?;
        Ok(model)
    }

    /// Makes layers or heads share keys and values. In a group of layers, the later ones lose their projections of keys and
    /// values with all that follows up to attention; their attention reads the rows of the first layer's KV cache, with queries
    /// rotated as those keys are. Masks and windows stay those of each layer. Of heads, the first of each group remains. The heads of
    /// the hyper-parameters become those that remain.
    ///
    /// # Errors
    /// [`KvSharingError`] if a number does not fit the model; the model is then unchanged.
    pub fn share_kv(&mut self, sharing: &KvSharing) -> Result<(), KvSharingError> {
        let heads = &mut self.config.heads;
        let first_of_group = |layer: usize| layer / sharing.group() * sharing.group();
        for (layer, of) in heads.iter().enumerate() {
            let first = if sharing.heads.is_some() { 0 } else { first_of_group(layer) };
            if of.kv != heads[first].kv {
                return Err(KvSharingError::Unlike { layer, other: first });
            }
        }
        let kv_heads = heads.iter().map(|of| of.kv.count).max().unwrap_or(0);
        self.graph = self.graph.share_kv(sharing, kv_heads)?;
        for (layer, of) in heads.iter_mut().enumerate() {
            of.kv_of = first_of_group(layer);
            of.kv.count = sharing.heads.unwrap_or(of.kv.count);
        }
        Ok(())
    }
}

/// The reason why the model in a weight file cannot be run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// The architecture is not in the table of supported ones.
    #[error("architecture '{found}' is not supported; supported are: {}", supported().join(", "))]
    UnknownArchitecture {
        /// Value of `general.architecture`.
        found: String,
    },
    /// A metadata key is missing or has a different type.
    #[error("{source} (needed to build a model; supported architectures: {})", supported().join(", "))]
    Metadata {
        /// The error of the key.
        #[from]
        source: MetadataError,
    },
    /// A metadata value is invalid or not supported.
    #[error("metadata key '{key}' is {found}, but {expected}")]
    BadValue {
        /// Key.
        key: String,
        /// Value found.
        found: String,
        /// Description of the accepted values.
        expected: String,
    },
    /// A tensor is not in the file.
    #[error(
        "tensor '{name}' of the {arch} architecture is missing; the file is incomplete, download it again"
    )]
    MissingTensor {
        /// Tensor name.
        name: String,
        /// Architecture.
        arch: &'static str,
    },
    /// A tensor's shape does not match the metadata.
    #[error(
        "tensor '{name}' has shape {found} as [rows, columns], but the metadata requires {expected}"
    )]
    TensorShape {
        /// Tensor name.
        name: String,
        /// Shape in the file.
        found: String,
        /// Shape required by the metadata.
        expected: String,
    },
    /// A part of a vector is needed that is not a whole number of blocks.
    #[error(
        "values {} to {} of tensor '{name}' are needed, but {dtype} stores blocks that they cut", part.start, part.end
    )]
    TensorPart {
        /// Tensor name.
        name: String,
        /// Format.
        dtype: DType,
        /// The values.
        part: Range<usize>,
    },
    /// A product with a matrix in NVFP4 in a feed-forward block has a factor and a bias: llama.cpp has no order for them.
    #[error(
        "matrix '{matrix}' in NVFP4 has a scale and a bias, whose order in feed-forward blocks is not defined; \
         convert the model with its matrices in another format"
    )]
    ScaleAndBias {
        /// Name of the matrix, without `.weight`.
        matrix: String,
    },
    /// A file has no layer that predicts a further token, or one of an architecture whose predictors are not supported.
    #[error(
        "the file has no layer that predicts a second token (tensors 'nextn'), or its architecture {arch} is none whose predictors are \
         supported ({}); choose another drafter", architectures::predicting().join(", ")
    )]
    NoPredictor {
        /// Architecture.
        arch: &'static str,
    },
    /// A tensor that no op reads: running without it would give different results.
    #[error(
        "tensor '{name}' is not used by the supported {arch} architecture ({count} such tensors); this variant of the model cannot be run"
    )]
    UnusedTensor {
        /// First such tensor.
        name: String,
        /// Architecture.
        arch: &'static str,
        /// Number of such tensors.
        count: usize,
    },
}
