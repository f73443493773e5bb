//! Gemma 3: Gemma 2 without caps, with normalised heads, and five layers of six with a window and a rotary base of their own.

use super::super::build::{Builder, LayerForm, Norms, QkNorm};
use super::super::keys::{Keys, Windows};
use super::super::{ModelConfig, ModelError};
use super::{Architecture, Decoder};
use crate::graph::ValueId;

pub(super) const ARCHITECTURE: Architecture = Architecture::decoder("gemma3", &Gemma3);

struct Gemma3;

impl Decoder for Gemma3 {
    fn settings(&self, keys: &Keys<'_>, config: &mut ModelConfig) -> Result<(), ModelError> {
        config.as_gemma(62);
        keys.windows(config, Windows { period: 6, default: None })?;
        config.rope_base_window = keys.rope_base("rope.freq_base_swa")?.unwrap_or(10_000.0);
        config.window_rope_is_scaled = false;
        Ok(())
    }

    fn layer(&self, b: &mut Builder<'_>, x: ValueId) -> Result<ValueId, ModelError> {
        b.layer(x, LayerForm { qk: QkNorm::Heads, norms: Norms::BOTH, ..LayerForm::PLAIN })
    }
}
