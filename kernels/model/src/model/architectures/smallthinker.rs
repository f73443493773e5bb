//! SmallThinker: routers read what the layer reads, before attention, and experts have ReLU gates. All layers but each fourth from the
//! first have a window, if any has, and then only these rotate.

use super::super::build::{Builder, LayerForm};
use super::super::keys::{ExpertsForm, Keys};
use super::super::{ModelConfig, ModelError};
use super::{Architecture, Decoder};
use crate::graph::ValueId;
use crate::op::{ExpertForm, RopePairs, RouterScore};

pub(super) const ARCHITECTURE: Architecture = Architecture::decoder("smallthinker", &SmallThinker);

struct SmallThinker;

impl Decoder for SmallThinker {
    fn settings(&self, keys: &Keys<'_>, config: &mut ModelConfig) -> Result<(), ModelError> {
        config.rope_pairs = RopePairs::Halves;
        keys.windows_but_first(config, 4)?;
        if config.window.is_some() {
            config.rotated = (0..config.layers).map(|layer| layer % 4 != 0).collect();
        }
        let (score, form) = (RouterScore::Softmax, ExpertForm::ReluGated);
        keys.experts(config, ExpertsForm { score, reads_score: true, form, ..ExpertsForm::PLAIN })
    }

    fn layer(&self, b: &mut Builder<'_>, x: ValueId) -> Result<ValueId, ModelError> {
        let (form, normed) = (LayerForm::PLAIN, b.norm("attn_norm", x)?);
        let attended = b.attention(normed, &form)?;
        let Some(experts) = b.experts() else {
            return b.after_attention([x, normed, attended], form);
        };
        let (sum, read) = (b.add_attended(attended, x), b.continued(x));
        let logits = b.linear("ffn_gate_inp", read, experts.count)?;
        let route = b.route(logits, experts)?;
        let read = b.norm("ffn_norm", sum)?;
        let fed = b.mixed_experts([read, route], experts)?;
        Ok(b.add_fed(fed, sum))
    }
}
