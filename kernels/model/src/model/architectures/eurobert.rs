//! EuroBERT (Boizard et al., 2025), and Jina's smallest embedding model of the fifth version: layers of Llama whose rows see all rows.

use super::super::build::{Builder, LayerForm};
use super::super::keys::Keys;
use super::super::norm_kind::NormKind;
use super::super::{ModelConfig, ModelError};
use super::{Architecture, Encoder};
use crate::graph::ValueId;
use crate::op::RopePairs;

pub(super) const ARCHITECTURE: Architecture = Architecture::encoder("eurobert", &EuroBert);

struct EuroBert;

impl Encoder for EuroBert {
    fn settings(&self, _: &Keys<'_>, config: &mut ModelConfig) -> Result<(), ModelError> {
        config.rope_pairs = RopePairs::Halves;
        Ok(())
    }

    fn norm(&self) -> NormKind {
        NormKind::Rms
    }

    fn layer(&self, b: &mut Builder<'_>, x: ValueId) -> Result<ValueId, ModelError> {
        b.layer(x, LayerForm::PLAIN)
    }

    fn last_norm(&self) -> Option<&'static str> {
        Some("output_norm")
    }
}
