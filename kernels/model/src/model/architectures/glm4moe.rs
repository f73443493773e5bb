//! GLM 4.5 and its kin: experts beside one of all rows, behind dense layers, and in some sizes norms of heads. A layer that predicts a
//! second token is left out. Rotary sections are those of images.

use super::super::build::{Builder, LayerForm, Norms, QkNorm};
use super::super::experts::SharedExpert;
use super::super::keys::{ExpertsForm, Keys};
use super::super::{ModelConfig, ModelError};
use super::{Architecture, Decoder};
use crate::graph::ValueId;
use crate::op::RopePairs;

pub(super) const ARCHITECTURE: Architecture = Architecture::decoder("glm4moe", &Glm4Moe);

struct Glm4Moe;

impl Decoder for Glm4Moe {
    fn settings(&self, keys: &Keys<'_>, config: &mut ModelConfig) -> Result<(), ModelError> {
        config.rope_pairs = RopePairs::Halves;
        keys.ignore("rope.dimension_sections");
        keys.leave_out_predictors(config)?;
        let shared = SharedExpert::Optional;
        keys.experts(config, ExpertsForm { shared, ..ExpertsForm::STATED })
    }

    fn has_predictors(&self) -> bool {
        true
    }

    fn layer(&self, b: &mut Builder<'_>, x: ValueId) -> Result<ValueId, ModelError> {
        let qk = if b.has("attn_q_norm.weight") { QkNorm::Heads } else { QkNorm::None };
        let before_feed_forward = Some("post_attention_norm");
        let norms = Norms { before_feed_forward, ..Norms::BEFORE };
        b.layer(x, LayerForm { qk, norms, ..LayerForm::PLAIN })
    }
}
