//! Muse Glimmer: gates of attention, a norm of embeddings, norms before and after both blocks, normalised heads, and three layers of
//! four with a window, of which only these rotate.

use super::super::build::{AttentionGate, Builder, LayerForm, Norms, QkNorm};
use super::super::keys::{Keys, Windows};
use super::super::{ModelConfig, ModelError};
use super::{Architecture, Decoder};
use crate::graph::ValueId;
use crate::op::Op;

pub(super) const ARCHITECTURE: Architecture = Architecture::decoder("muse-glimmer", &MuseGlimmer);

struct MuseGlimmer;

impl Decoder for MuseGlimmer {
    fn settings(&self, keys: &Keys<'_>, config: &mut ModelConfig) -> Result<(), ModelError> {
        keys.count("attention.sliding_window", 1 << 30)?;
        keys.windows(config, Windows { period: 4, default: None })?;
        config.rotated.clone_from(&config.windowed);
        config.window_rope_is_scaled = false;
        config.logit_scale = keys.factor("logit_scale", 1.0)?;
        config.logit_cap = keys.cap("final_logit_softcapping", None)?;
        Ok(())
    }

    fn embedded(&self, b: &mut Builder<'_>, x: ValueId) -> Result<ValueId, ModelError> {
        let (group, eps) = (b.config.width, b.config.norm_eps);
        Ok(b.push(Op::RmsNorm { weight: None, group, eps }, &[x], group, "embed_norm"))
    }

    fn layer(&self, b: &mut Builder<'_>, x: ValueId) -> Result<ValueId, ModelError> {
        let norms = Norms { after_eps: Some(1e-8), ..Norms::BOTH };
        let (qk, gate) = (QkNorm::Heads, AttentionGate::Values);
        b.layer(x, LayerForm { qk, gate, norms, ..LayerForm::PLAIN })
    }
}
