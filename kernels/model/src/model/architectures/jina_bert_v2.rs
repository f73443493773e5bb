//! Jina's embedding models of the second version, and its first rerankers: BERT with linear biases of attention in place of the table
//! of positions, and gated feed-forward blocks; some have norms of queries and keys, and one more norm behind attention.

use super::super::build::{Builder, FeedForward, LayerForm, QkNorm};
use super::super::keys::Keys;
use super::super::{ModelConfig, ModelError};
use super::{Architecture, Encoder};
use crate::graph::ValueId;
use crate::op::{Activation, Curve};

pub(super) const ARCHITECTURE: Architecture = Architecture::encoder("jina-bert-v2", &JinaBertV2);

struct JinaBertV2;

impl Encoder for JinaBertV2 {
    fn settings(&self, keys: &Keys<'_>, config: &mut ModelConfig) -> Result<(), ModelError> {
        keys.ignore("attention.max_alibi_bias");
        config.rotated.fill(false);
        config.alibi = Some(8.0);
        config.activation = Activation::GeluTanh;
        Ok(())
    }

    fn embedded(&self, b: &mut Builder<'_>, x: ValueId) -> Result<ValueId, ModelError> {
        let x = b.token_type(x)?;
        b.norm("token_embd_norm", x)
    }

    fn layer(&self, b: &mut Builder<'_>, x: ValueId) -> Result<ValueId, ModelError> {
        let qk = match b.has("attn_q_norm.weight") {
            true => QkNorm::Rows,
            false => QkNorm::None,
        };
        let is_gated = b.has("ffn_gate.weight") || b.rows("ffn_up.weight") != b.ffn_width();
        let feed_forward = match is_gated {
            true => FeedForward::Gated,
            false => FeedForward::Plain(Curve::Gelu),
        };
        b.post_norm_layer(x, LayerForm { qk, feed_forward, ..LayerForm::PLAIN })
    }
}
