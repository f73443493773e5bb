//! Kimi Linear: delta nets whose states fade by channel, between layers with latent attention, which does not rotate; experts beside one
//! of all rows, behind dense layers.

use super::super::build::{Builder, LayerForm};
use super::super::experts::SharedExpert;
use super::super::keys::{ExpertsForm, Keys};
use super::super::{ModelConfig, ModelError};
use super::{Architecture, Decoder};
use crate::graph::ValueId;
use crate::op::RouterScore;

pub(super) const ARCHITECTURE: Architecture = Architecture::decoder("kimi-linear", &KimiLinear);

struct KimiLinear;

impl Decoder for KimiLinear {
    fn settings(&self, keys: &Keys<'_>, config: &mut ModelConfig) -> Result<(), ModelError> {
        config.rotated.fill(false);
        keys.channel_delta_nets(config)?;
        let (score, shared) = (RouterScore::Sigmoid, SharedExpert::Optional);
        keys.experts(config, ExpertsForm { score, reads_score: true, shared, ..ExpertsForm::PLAIN })
    }

    fn layer(&self, b: &mut Builder<'_>, x: ValueId) -> Result<ValueId, ModelError> {
        layer(b, x, LayerForm::PLAIN)
    }
}

/// The current layer: of that form with latent attention, or with a delta net.
pub(super) fn layer(
    b: &mut Builder<'_>,
    x: ValueId,
    form: LayerForm,
) -> Result<ValueId, ModelError> {
    if !b.config.has_state(b.layer_number()) {
        return b.latent_layer(x, form);
    }
    let normed = b.norm("attn_norm", x)?;
    let mixed = b.channel_delta_net(normed)?;
    b.after_attention([x, normed, mixed], form)
}
