//! EmbeddingGemma: layers of Gemma 3 whose rows see all rows, or those in a window around each, and two products behind the mean.

use super::super::build::{Builder, LayerForm, Norms, QkNorm};
use super::super::keys::{Keys, Windows};
use super::super::norm_kind::NormKind;
use super::super::{ModelConfig, ModelError};
use super::{Architecture, Encoder};
use crate::graph::ValueId;

pub(super) const ARCHITECTURE: Architecture =
    Architecture::encoder("gemma-embedding", &GemmaEmbedding);

struct GemmaEmbedding;

impl Encoder for GemmaEmbedding {
    fn settings(&self, keys: &Keys<'_>, config: &mut ModelConfig) -> Result<(), ModelError> {
        config.as_gemma(usize::MAX);
        keys.windows(config, Windows { period: 6, default: None })?;
        config.rope_base_window = keys.rope_base("rope.freq_base_swa")?.unwrap_or(10_000.0);
        config.window_rope_is_scaled = false;
        keys.ignore("dense_2_feat_out");
        keys.ignore("dense_3_feat_out");
        Ok(())
    }

    fn norm(&self) -> NormKind {
        NormKind::Rms
    }

    fn layer(&self, b: &mut Builder<'_>, x: ValueId) -> Result<ValueId, ModelError> {
        b.layer(x, LayerForm { qk: QkNorm::Heads, norms: Norms::BOTH, ..LayerForm::PLAIN })
    }

    fn is_projected(&self) -> bool {
        true
    }

    fn last_norm(&self) -> Option<&'static str> {
        Some("output_norm")
    }
}
