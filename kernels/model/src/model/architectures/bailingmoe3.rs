//! Ling 3: delta nets whose states fade by channel, with a bound, between layers with latent attention and gates of heads; experts of the
//! best groups beside one of all rows, with bounds in some layers, behind dense layers. A layer that predicts a second token is left out.

use super::super::build::{AttentionGate, Builder, LayerForm};
use super::super::keys::{ExpertLimits, ExpertsForm, Keys};
use super::super::{ModelConfig, ModelError};
use super::{Architecture, Decoder, kimi_linear};
use crate::graph::ValueId;
use crate::op::RopePairs;

pub(super) const ARCHITECTURE: Architecture = Architecture::decoder("bailingmoe3", &BailingMoe3);

struct BailingMoe3;

impl Decoder for BailingMoe3 {
    fn settings(&self, keys: &Keys<'_>, config: &mut ModelConfig) -> Result<(), ModelError> {
        // Sections are those of images, whose files rotate halves.
        if keys.flags("rope.dimension_sections")? {
            config.rope_pairs = RopePairs::Halves;
        }
        keys.leave_out_predictors(config)?;
        keys.channel_delta_nets(config)?;
        keys.least_decay(config)?;
        config.gate_limits = keys.gate_limits("swiglu_clamp_shexp", config)?;
        let limits = ExpertLimits::Activated;
        keys.experts(config, ExpertsForm { limits, ..ExpertsForm::STATED })
    }

    fn has_predictors(&self) -> bool {
        true
    }

    fn layer(&self, b: &mut Builder<'_>, x: ValueId) -> Result<ValueId, ModelError> {
        kimi_linear::layer(b, x, LayerForm { gate: AttentionGate::Heads, ..LayerForm::PLAIN })
    }
}
