//! Embedding models of Llama 3 (Llama Embed Nemotron): layers of Llama whose rows see all rows.

use super::super::ModelError;
use super::super::build::{Builder, LayerForm};
use super::super::norm_kind::NormKind;
use super::{Architecture, Encoder};
use crate::graph::ValueId;

pub(super) const ARCHITECTURE: Architecture = Architecture::encoder("llama-embed", &LlamaEmbed);

struct LlamaEmbed;

impl Encoder for LlamaEmbed {
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
