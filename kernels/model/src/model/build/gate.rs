//! Gates of what attention makes.

use super::super::ModelError;
use super::Builder;
use crate::graph::ValueId;
use crate::op::{Activation, Op};

/// Sigmoids of a product with what attention reads, which multiply what it makes of the values before the last product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AttentionGate {
    /// None.
    None,
    /// One for each value.
    Values,
    /// One for each head.
    Heads,
}

impl Builder<'_> {
    /// The product with `x`, which attention reads, if it has gates.
    pub(super) fn gates(
        &mut self,
        x: ValueId,
        gate: AttentionGate,
    ) -> Result<Option<ValueId>, ModelError> {
        let width = match gate {
            AttentionGate::None => return Ok(None),
            AttentionGate::Values => self.heads().mixed_width(),
            AttentionGate::Heads => self.heads().count,
        };
        self.linear("attn_gate", x, width).map(Some)
    }

    /// What attention makes of the values, times the sigmoids of `gates`, each of which is for as many neighbours.
    pub(super) fn gated(&mut self, gates: Option<ValueId>, mixed: ValueId) -> ValueId {
        let Some(gates) = gates else { return mixed };
        let width = self.graph.value(mixed).width;
        let gates = match width / self.graph.value(gates).width {
            1 => gates,
            times => {
                let each = Op::Columns { first: 0, times };
                self.push(each, &[gates], width, "attn_gate_of_values")
            }
        };
        self.push(Op::Gated(Activation::Sigmoid), &[gates, mixed], width, "attn_gated")
    }
}
