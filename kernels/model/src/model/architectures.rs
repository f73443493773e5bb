//! The architectures: one file each, over the shared parts of the builder.

use std::fmt;

use super::ModelConfig;
use super::ModelError;
use super::build::{Builder, Norms, QkNorm};
use super::keys::Keys;
use crate::graph::ValueId;

mod bert;
mod exaone4;
mod gemma2;
mod gemma3;
mod granite;
mod internlm2;
mod llama;
mod minicpm;
mod olmo2;
mod qwen2;
mod qwen3;
mod seed_oss;
mod smollm3;

/// All architectures.
const TABLE: [Architecture; 13] = [
    llama::ARCHITECTURE,
    internlm2::ARCHITECTURE,
    qwen2::ARCHITECTURE,
    qwen3::ARCHITECTURE,
    gemma2::ARCHITECTURE,
    gemma3::ARCHITECTURE,
    smollm3::ARCHITECTURE,
    granite::ARCHITECTURE,
    minicpm::ARCHITECTURE,
    olmo2::ARCHITECTURE,
    exaone4::ARCHITECTURE,
    seed_oss::ARCHITECTURE,
    bert::ARCHITECTURE,
];

/// An architecture that models can have.
#[derive(Clone, Copy)]
pub struct Architecture {
    name: &'static str,
    pub(super) family: Family,
}

/// What an architecture computes.
#[derive(Clone, Copy)]
pub(super) enum Family {
    /// Rows see earlier ones only, and the output is the logits of the next token.
    Decoder(&'static dyn Decoder),
    /// Rows see all rows of their sequence, and the output is hidden states.
    Encoder(&'static dyn Encoder),
}

/// A decoder: the differences from the plain pre-norm transformer with gated feed-forward blocks.
pub(super) trait Decoder: Sync {
    /// Sets the hyper-parameters that differ from the plain ones, from keys that the plain transformer does not read, or reads
    /// with another default.
    fn settings(&self, _keys: &Keys<'_>, _config: &mut ModelConfig) -> Result<(), ModelError> {
        Ok(())
    }

    /// Adds the builder's current layer for the hidden states `x`, and returns the next ones.
    fn layer(&self, b: &mut Builder<'_>, x: ValueId) -> Result<ValueId, ModelError> {
        b.layer(x, QkNorm::None, Norms::BEFORE)
    }
}

/// An encoder.
pub(super) trait Encoder: Sync {
    /// Adds all nodes.
    fn nodes(&self, b: &mut Builder<'_>) -> Result<(), ModelError>;
}

impl Architecture {
    const fn decoder(name: &'static str, family: &'static dyn Decoder) -> Architecture {
        Architecture { name, family: Family::Decoder(family) }
    }

    const fn encoder(name: &'static str, family: &'static dyn Encoder) -> Architecture {
        Architecture { name, family: Family::Encoder(family) }
    }

    /// The architecture of that name.
    pub fn by_name(name: &str) -> Option<Architecture> {
        TABLE.into_iter().find(|architecture| architecture.name == name)
    }

    /// Its name, as in `general.architecture`.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Whether its rows see later ones, so that its models make embeddings only.
    pub fn is_encoder(&self) -> bool {
        matches!(self.family, Family::Encoder(_))
    }
}

impl fmt::Debug for Architecture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Architecture").field(&self.name).finish()
    }
}

impl PartialEq for Architecture {
    fn eq(&self, other: &Architecture) -> bool {
        self.name == other.name
    }
}

/// Names of the supported architectures, as in `general.architecture`.
pub fn supported() -> Vec<&'static str> {
    TABLE.iter().map(|architecture| architecture.name).collect()
}
