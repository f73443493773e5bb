//! gpt-oss: experts with biases and clamped gates, which are chosen by their logits; sinks; a window on each second layer.

use super::super::build::{Builder, LayerForm, Norms};
use super::super::keys::{ExpertsForm, Keys, Windows};
use super::super::{ModelConfig, ModelError, SinkLayers};
use super::{Architecture, Decoder};
use crate::graph::ValueId;
use crate::op::{ExpertForm, RopePairs, RouterScore};

pub(super) const ARCHITECTURE: Architecture = Architecture::decoder("gpt-oss", &GptOss);

struct GptOss;

impl Decoder for GptOss {
    fn settings(&self, keys: &Keys<'_>, config: &mut ModelConfig) -> Result<(), ModelError> {
        config.rope_pairs = RopePairs::Halves;
        config.sinks = SinkLayers::All;
        keys.windows(config, Windows { period: 2, default: None })?;
        let form =
            ExpertForm::ClampedGated { alpha: 1.702, gate_limit: 7.0, limit: 7.0, offset: 1.0 };
        let score = RouterScore::ChosenSoftmax;
        let is_normalised = false;
        keys.experts(config, ExpertsForm { score, is_normalised, form, ..ExpertsForm::PLAIN })
    }

    fn layer(&self, b: &mut Builder<'_>, x: ValueId) -> Result<ValueId, ModelError> {
        let before_feed_forward = Some("post_attention_norm");
        let norms = Norms { before_feed_forward, ..Norms::BEFORE };
        b.layer(x, LayerForm { norms, ..LayerForm::PLAIN })
    }
}
