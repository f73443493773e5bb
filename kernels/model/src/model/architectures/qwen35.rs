//! Qwen 3.5 and its successors: three of four layers have a gated delta net in place of attention, whose heads have gates beside
//! their queries. Layers that predict further tokens are left out. Rotary sections are those of images.

use super::super::build::{AttentionGate, Builder, LayerForm, Norms, QkNorm};
use super::super::keys::Keys;
use super::super::{ModelConfig, ModelError};
use super::{Architecture, Decoder};
use crate::graph::ValueId;
use crate::op::{KeyOrder, RopePairs};

pub(super) const ARCHITECTURE: Architecture = Architecture::decoder("qwen35", &Qwen35);

struct Qwen35;

impl Decoder for Qwen35 {
    fn settings(&self, keys: &Keys<'_>, config: &mut ModelConfig) -> Result<(), ModelError> {
        settings(keys, config)
    }

    fn has_predictors(&self) -> bool {
        true
    }

    fn layer(&self, b: &mut Builder<'_>, x: ValueId) -> Result<ValueId, ModelError> {
        layer(b, x, KeyOrder::Turns)
    }
}

/// Sets the layers with delta nets.
pub(super) fn settings(keys: &Keys<'_>, config: &mut ModelConfig) -> Result<(), ModelError> {
    config.rope_pairs = RopePairs::Halves;
    keys.ignore("rope.dimension_sections");
    keys.leave_out_predictors(config)?;
    keys.delta_nets(config)
}

/// The current layer.
pub(super) fn layer(
    b: &mut Builder<'_>,
    x: ValueId,
    order: KeyOrder,
) -> Result<ValueId, ModelError> {
    let norms = Norms { before_feed_forward: Some("post_attention_norm"), ..Norms::BEFORE };
    let gate = AttentionGate::BesideQueries;
    let form = LayerForm { qk: QkNorm::Heads, gate, norms, ..LayerForm::PLAIN };
    if !b.config.has_state(b.layer_number()) {
        return b.layer(x, form);
    }
    let normed = b.norm("attn_norm", x)?;
    let mixed = b.delta_net(normed, order)?;
    b.after_attention([x, normed, mixed], form)
}
