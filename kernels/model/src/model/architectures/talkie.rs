//! Talkie: norms without weights, also of embeddings, which each layer adds again, and of heads after the rotation, with a factor
//! for each head of queries.

use super::super::build::{Builder, LayerForm, QkNorm};
use super::super::keys::Keys;
use super::super::norm_kind::NormKind;
use super::super::{LayerHeads, ModelConfig, ModelError};
use super::{Architecture, Decoder};
use crate::graph::ValueId;
use crate::op::{Op, RopePairs};

pub(super) const ARCHITECTURE: Architecture = Architecture::decoder("talkie", &Talkie);

struct Talkie;

impl Decoder for Talkie {
    fn settings(&self, keys: &Keys<'_>, config: &mut ModelConfig) -> Result<(), ModelError> {
        config.rope_pairs = RopePairs::Halves;
        config.logit_scale = keys.factor("logit_scale", 1.0)?;
        Ok(())
    }

    fn norm(&self) -> NormKind {
        NormKind::RmsWithoutWeights
    }

    fn embedded(&self, b: &mut Builder<'_>, x: ValueId) -> Result<ValueId, ModelError> {
        b.norm("embed_norm", x)
    }

    fn layers(&self, b: &mut Builder<'_>, embedded: ValueId) -> Result<ValueId, ModelError> {
        (0..b.config.layers).try_fold(embedded, |x, layer| {
            b.layer = Some(layer);
            let normed = b.norm("attn_norm", x)?;
            let attended = b.attention_of_scaled_heads(normed)?;
            let x = b.after_attention([x, normed, attended], LayerForm::PLAIN)?;
            let (width, again) = (b.config.width, b.continued(embedded));
            let weight = b.vector(&b.name("layer_output_scale.weight"), 1)?;
            let again = b.push(Op::ScaleBy { weight }, &[again], width, "embed_scale");
            Ok(b.push(Op::Add, &[x, again], width, "embed_residual"))
        })
    }
}

impl Builder<'_> {
    /// Attention of the current layer with normalised heads, of which those of queries have a factor each.
    fn attention_of_scaled_heads(&mut self, x: ValueId) -> Result<ValueId, ModelError> {
        let LayerHeads { count, kv, .. } = self.heads();
        let [q, k, v] = self.projections(x)?;
        let q = self.rotated("rope_q", q, count);
        let k = self.rotated("rope_k", k, kv.count);
        let q = self.qk_norm("attn_q_norm", q, QkNorm::RotatedHeads)?;
        let k = self.qk_norm("attn_k_norm", k, QkNorm::RotatedHeads)?;
        let q = self.scaled_heads("attn_q_norm.weight", q, count)?;
        self.mixed(&[q, k, v])
    }
}
