//! Grok 1 and 2: norms before and after both blocks, factors on embeddings, scores and logits, caps on scores, and experts with GELU;
//! in Grok 2 a dense block beside them, of whose sum a part is taken that keeps its size.

use std::f32::consts::FRAC_1_SQRT_2;

use super::super::build::{Builder, LayerForm};
use super::super::keys::{ExpertsForm, Keys};
use super::super::{ModelConfig, ModelError};
use super::{Architecture, Decoder};
use crate::graph::ValueId;
use crate::op::{Activation, ExpertForm, Op, RopePairs};

pub(super) const ARCHITECTURE: Architecture = Architecture::decoder("grok", &Grok);

struct Grok;

impl Decoder for Grok {
    fn settings(&self, keys: &Keys<'_>, config: &mut ModelConfig) -> Result<(), ModelError> {
        config.rope_pairs = RopePairs::Halves;
        config.activation = Activation::GeluTanh;
        config.embedding_scale = keys.factor("embedding_scale", 78.383_67)?;
        config.score_scale = keys.factor("attention.output_scale", 0.088_388_346)?;
        config.attention_cap = keys.cap("attn_logit_softcapping", Some(30.0))?;
        config.logit_scale = keys.factor("logit_scale", 0.577_350_26)?;
        config.logit_cap = keys.cap("final_logit_softcapping", None)?;
        keys.ignore("attention.temperature_length");
        let form = ExpertForm::Gated(Activation::GeluTanh);
        keys.experts(config, ExpertsForm { form, ..ExpertsForm::PLAIN })
    }

    fn layer(&self, b: &mut Builder<'_>, x: ValueId) -> Result<ValueId, ModelError> {
        let experts = b.some_experts()?;
        let (form, width, normed) = (LayerForm::PLAIN, b.config.width, b.norm("attn_norm", x)?);
        let attended = b.attention(normed, &form)?;
        let attended = b.norm("attn_output_norm", attended)?;
        let sum = b.add_attended(attended, x);
        let read = b.norm("ffn_norm", sum)?;
        let mut fed = b.expert_block(read, experts)?;
        if b.has("ffn_up.weight") {
            let dense = b.dense_block(read, &form)?;
            let both = b.push(Op::Add, &[dense, fed], width, "ffn_both");
            fed = b.push(Op::Scale { factor: FRAC_1_SQRT_2 }, &[both], width, "ffn_both_scaled");
        }
        let has_own = b.has("layer_output_norm.weight");
        let fed = b.norm(if has_own { "layer_output_norm" } else { "post_ffw_norm" }, fed)?;
        Ok(b.add_fed(fed, sum))
    }
}
