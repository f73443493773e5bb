//! Latent attention (DeepSeek-V2, 2024): keys and values of all heads are products of one short row per token. A part of each
//! key, which is the same for all heads, rotates, as does a part of each query.

use super::head_rows::HeadRows;
use super::weights::Joined;
use super::{Builder, LayerForm, ModelError};
use crate::graph::ValueId;
use crate::model::LatentRanks;
use crate::op::Op;

impl Builder<'_> {
    /// A layer of that form with latent attention.
    pub(crate) fn latent_layer(
        &mut self,
        x: ValueId,
        form: LayerForm,
    ) -> Result<ValueId, ModelError> {
        let normed = self.norm("attn_norm", x)?;
        let attended = self.latent_attention(normed, form)?;
        self.after_attention([x, normed, attended], form)
    }

    /// Attention of the current layer, for which keys and values of all heads are computed from the latent row. Of the two parts of
    /// queries and keys, the second rotates.
    fn latent_attention(&mut self, x: ValueId, form: LayerForm) -> Result<ValueId, ModelError> {
        let gates = self.gates(x, form.gate)?;
        let mixed = self.latent_mixed(x)?;
        let mixed = self.gated(gates, mixed, form.gate_curve);
        self.linear("attn_output", mixed, self.config.width)
    }

    /// What attention makes of the values.
    fn latent_mixed(&mut self, x: ValueId) -> Result<ValueId, ModelError> {
        let (name, heads, ranks) = ("attn_kv_a_mqa", self.heads(), self.latent_ranks());
        let (rank, plain) = (ranks.kv, ranks.key_dim - heads.rope_dims);
        let all = rank + heads.rope_dims;
        let latent = self.joined_part("attn_kv_a", x, &Joined { name, all, rows: 0..rank })?;
        let k_pe = self.joined_part("attn_k_pe", x, &Joined { name, all, rows: rank..all })?;
        let [q, q_pe] = self.latent_queries(x)?;
        let latent = self.latent_norm("attn_kv_a_norm", latent)?;
        if ranks.is_absorbed {
            return self.absorbed_attention([q, q_pe], [latent, k_pe]);
        }
        let (name, each) = ("attn_kv_b", plain + ranks.value_dim);
        let of = |rows| HeadRows { name, heads: heads.count, each, rows, bias: None };
        let k = self.head_rows("attn_k_nope", latent, &of(0..plain))?;
        let v = self.head_rows("attn_v", latent, &of(plain..each))?;
        let q_pe = self.rotated_if("rope_q", q_pe, heads.count);
        let q = self.join_heads("join_q", [q, q_pe], false);
        let q = self.warmed(q);
        let k_pe = self.rotated_if("rope_k", k_pe, 1);
        let k = self.join_heads("join_k", [k, k_pe], true);
        self.attended(&[q, k, v])
    }

    /// Attention whose only key is the latent row with the part that rotates behind it, and whose only value is the latent row.
    fn absorbed_attention(
        &mut self,
        [q, q_pe]: [ValueId; 2],
        [latent, k_pe]: [ValueId; 2],
    ) -> Result<ValueId, ModelError> {
        let (heads, ranks) = (self.heads(), self.latent_ranks());
        let q = self.head_products("attn_k_b", q, ranks.kv)?;
        let q_pe = self.rotated_if("rope_q", q_pe, heads.count);
        let q = self.join_heads("join_q", [q, q_pe], false);
        let q = self.warmed(q);
        let k_pe = self.rotated_if("rope_k", k_pe, 1);
        let k = self.beside("join_k", latent, k_pe);
        let mixed = self.attended(&[q, k, latent])?;
        self.head_products("attn_v_b", mixed, ranks.value_dim)
    }

    /// As [`rotated`](Builder::rotated), in layers that rotate.
    fn rotated_if(&mut self, role: &'static str, x: ValueId, heads: usize) -> ValueId {
        match self.config.rotated[self.layer_number()] {
            true => self.rotated(role, x, heads),
            false => x,
        }
    }

    /// The product of each head of `x` with a matrix of its own: of `name`, which has them below each other, `width` rows each.
    fn head_products(
        &mut self,
        name: &'static str,
        x: ValueId,
        width: usize,
    ) -> Result<ValueId, ModelError> {
        let heads = self.heads().count;
        let (each, all) = (self.graph.value(x).width / heads, heads * width);
        let mut made = Vec::new();
        for head in 0..heads {
            let op = Op::Columns { first: head * each, times: 1 };
            let own = self.push(op, &[x], each, "head");
            let rows = head * width..(head + 1) * width;
            made.push(self.joined_part("head_product", own, &Joined { name, all, rows })?);
        }
        while made.len() > 1 {
            let join = |pair: &[ValueId]| match *pair {
                [first, second] => self.beside("join_heads", first, second),
                _ => pair[0],
            };
            made = made.chunks(2).map(join).collect();
        }
        Ok(made[0])
    }

    /// The values of `first`, followed by those of `second`.
    pub(super) fn beside(
        &mut self,
        role: &'static str,
        first: ValueId,
        second: ValueId,
    ) -> ValueId {
        let width = self.graph.value(first).width + self.graph.value(second).width;
        self.push(Op::JoinHeads { heads: 1, is_shared: false }, &[first, second], width, role)
    }

    /// The two parts of queries: products of the hidden states, or of a latent row of their own.
    fn latent_queries(&mut self, x: ValueId) -> Result<[ValueId; 2], ModelError> {
        let (heads, ranks) = (self.heads(), self.latent_ranks());
        let (x, name) = match ranks.queries {
            None => (x, "attn_q"),
            Some(rank) => {
                let latent = self.linear("attn_q_a", x, rank)?;
                (self.latent_norm("attn_q_a_norm", latent)?, "attn_q_b")
            }
        };
        let (each, plain) = (ranks.key_dim, ranks.key_dim - heads.rope_dims);
        let parts = [("attn_q_nope", 0..plain), ("attn_q_pe", plain..each)];
        let of = |rows| HeadRows { name, heads: heads.count, each, rows, bias: None };
        let [nope, pe] = parts.map(|(role, rows)| self.head_rows(role, x, &of(rows)));
        Ok([nope?, pe?])
    }

    fn latent_ranks(&self) -> LatentRanks {
        self.config.latent.unwrap_or_else(|| unreachable!("latent layers have ranks"))
    }

    /// The norm of a latent row. The factor on what blocks add, by which the norms of hidden states differ, does not change it.
    fn latent_norm(&mut self, role: &'static str, x: ValueId) -> Result<ValueId, ModelError> {
        let group = self.graph.value(x).width;
        let weight = Some(self.vector(&self.name(&format!("{role}.weight")), group)?);
        let norm = Op::RmsNorm { weight, group, eps: self.config.norm_eps };
        Ok(self.push(norm, &[x], group, role))
    }

    /// The two parts of each head beside each other; if `is_shared`, the second is the same for all heads.
    fn join_heads(&mut self, role: &'static str, parts: [ValueId; 2], is_shared: bool) -> ValueId {
        let heads = self.heads().count;
        let [first, second] = parts.map(|part| self.graph.value(part).width);
        let width = first + second * if is_shared { heads } else { 1 };
        self.push(Op::JoinHeads { heads, is_shared }, &parts, width, role)
    }
}
