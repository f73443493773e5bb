//! Attention with normalised queries, keys and values, in layers that may read the keys and values of others.

use super::super::{LayerHeads, ModelError};
use super::{Builder, QkNorm};
use crate::graph::ValueId;
use crate::op::Op;

impl Builder<'_> {
    /// Attention of the current layer. A layer without keys of its own has only queries.
    pub(crate) fn normed_attention(&mut self, x: ValueId) -> Result<ValueId, ModelError> {
        if self.config.has_kv(self.layer_number()) {
            let projected = self.projections(x)?;
            return self.normed_and_mixed(projected);
        }
        for tensor in ["attn_k.weight", "attn_v.weight", "attn_k_norm.weight"] {
            self.leave_unread(tensor);
        }
        let q = self.queries(x)?;
        let q = self.qk_norm("attn_q_norm", q, QkNorm::Heads)?;
        let q = self.rotated("rope_q", q, self.heads().count);
        self.mixed(&[q])
    }

    /// As [`normed_attention`](Builder::normed_attention), where the projected keys are the values.
    pub(crate) fn normed_attention_of_keys(&mut self, x: ValueId) -> Result<ValueId, ModelError> {
        if !self.config.has_kv(self.layer_number()) {
            return self.normed_attention(x);
        }
        let width = self.heads().kv.key_width();
        let (q, k) = (self.queries(x)?, self.linear("attn_k", x, width)?);
        self.normed_and_mixed([q, k, k])
    }

    fn normed_and_mixed(&mut self, [q, k, v]: [ValueId; 3]) -> Result<ValueId, ModelError> {
        let LayerHeads { count, kv, .. } = self.heads();
        let q = self.qk_norm("attn_q_norm", q, QkNorm::Heads)?;
        let norm = Op::RmsNorm { weight: None, group: kv.value_dim, eps: self.config.norm_eps };
        let v = self.push(norm, &[v], kv.value_width(), "attn_v_norm");
        let k = self.qk_norm("attn_k_norm", k, QkNorm::Heads)?;
        let q = self.rotated("rope_q", q, count);
        let k = self.rotated("rope_k", k, kv.count);
        self.mixed(&[q, k, v])
    }
}
