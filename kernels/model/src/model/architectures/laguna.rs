//! Laguna: gates of attention by softplus, norms of heads, experts by sigmoids beside one of all rows, behind dense layers. Where the
//! file has a window, all layers but each fourth from the first have it, with heads and a rotation of their own, which is not scaled.

use super::super::build::{AttentionGate, Builder, GateCurve, LayerForm, QkNorm};
use super::super::keys::{ExpertsForm, Keys};
use super::super::{ModelConfig, ModelError};
use super::{Architecture, Decoder};
use crate::graph::ValueId;
use crate::op::RopePairs;

pub(super) const ARCHITECTURE: Architecture = Architecture::decoder("laguna", &Laguna);

struct Laguna;

impl Decoder for Laguna {
    fn settings(&self, keys: &Keys<'_>, config: &mut ModelConfig) -> Result<(), ModelError> {
        config.rope_pairs = RopePairs::Halves;
        keys.windows_but_first(config, 4)?;
        config.window_rope_is_scaled = false;
        keys.rope_dims_of_windows(config, config.heads[0].rope_dims)?;
        keys.experts(config, ExpertsForm::STATED)
    }

    fn layer(&self, b: &mut Builder<'_>, x: ValueId) -> Result<ValueId, ModelError> {
        let gate = match b.rows("attn_gate.weight") == b.heads().count {
            true => AttentionGate::Heads,
            false => AttentionGate::Values,
        };
        let (qk, gate_curve) = (QkNorm::Heads, GateCurve::Softplus);
        b.layer(x, LayerForm { qk, gate, gate_curve, ..LayerForm::PLAIN })
    }
}
