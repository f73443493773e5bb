//! Gates of what attention makes.

use super::super::ModelError;
use super::Builder;
use super::head_rows::HeadRows;
use crate::graph::ValueId;
use crate::op::{Activation, Curve, Op};

/// Functions of a product with what attention reads, which multiply what it makes of the values before the last product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AttentionGate {
    /// None.
    None,
    /// One for each value.
    Values,
    /// One for each head.
    Heads,
    /// One for each value: products with rows of the matrix of queries, behind those of each head's query.
    BesideQueries,
}

/// What becomes of the product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GateCurve {
    /// 1 / (1 + exp(−x)).
    Sigmoid,
    /// ln(1 + exp(x)).
    Softplus,
}

impl Builder<'_> {
    /// Queries, keys and values of `x`, and the gates, if there are any.
    pub(super) fn gated_projections(
        &mut self,
        x: ValueId,
        gate: AttentionGate,
    ) -> Result<([ValueId; 3], Option<ValueId>), ModelError> {
        if gate != AttentionGate::BesideQueries {
            return Ok((self.projections(x)?, self.gates(x, gate)?));
        }
        let heads = self.heads();
        let (name, dim) = ("attn_q", heads.kv.key_dim);
        let of = |rows| HeadRows { name, heads: heads.count, each: 2 * dim, rows, bias: None };
        let q = self.head_rows("attn_q", x, &of(0..dim))?;
        let gates = self.head_rows("attn_gate", x, &of(dim..2 * dim))?;
        let k = self.linear("attn_k", x, heads.kv.key_width())?;
        let v = self.linear("attn_v", x, heads.kv.value_width())?;
        Ok(([q, k, v], Some(gates)))
    }

    /// The product with `x`, which attention reads, if it has gates.
    pub(super) fn gates(
        &mut self,
        x: ValueId,
        gate: AttentionGate,
    ) -> Result<Option<ValueId>, ModelError> {
        let width = match gate {
            AttentionGate::None => return Ok(None),
            AttentionGate::Values | AttentionGate::BesideQueries => self.heads().mixed_width(),
            AttentionGate::Heads => self.heads().count,
        };
        self.linear("attn_gate", x, width).map(Some)
    }

    /// What attention makes of the values, times the curves of `gates`, each of which is for as many neighbours.
    pub(super) fn gated(
        &mut self,
        gates: Option<ValueId>,
        mixed: ValueId,
        curve: GateCurve,
    ) -> ValueId {
        let Some(mut gates) = gates else { return mixed };
        if curve == GateCurve::Softplus {
            gates = self.curve(Curve::Softplus, gates, "attn_gate_softplus");
        }
        let width = self.graph.value(mixed).width;
        let gates = match width / self.graph.value(gates).width {
            1 => gates,
            times => {
                let each = Op::Columns { first: 0, times };
                self.push(each, &[gates], width, "attn_gate_of_values")
            }
        };
        let op = match curve {
            GateCurve::Sigmoid => Op::Gated(Activation::Sigmoid),
            GateCurve::Softplus => Op::Multiply,
        };
        self.push(op, &[gates, mixed], width, "attn_gated")
    }
}
