//! Gates with bounds.

use super::Builder;
use crate::graph::ValueId;
use crate::op::{Activation, Curve, Op};

/// Names of what a gated block makes of its gate and of what it gates.
#[derive(Clone, Copy, Debug)]
pub(super) struct GateRoles {
    silu: &'static str,
    silu_clamp: &'static str,
    up_clamp: &'static str,
    gated: &'static str,
}

impl GateRoles {
    /// Of a block that is the same for all rows.
    pub(super) const DENSE: GateRoles = GateRoles {
        silu: "ffn_silu",
        silu_clamp: "ffn_silu_clamp",
        up_clamp: "ffn_up_clamp",
        gated: "ffn_gated",
    };

    /// Of the expert of all rows.
    pub(super) const SHARED: GateRoles = GateRoles {
        silu: "ffn_silu_shexp",
        silu_clamp: "ffn_silu_clamp_shexp",
        up_clamp: "ffn_up_clamp_shexp",
        gated: "ffn_gated_shexp",
    };
}

impl Builder<'_> {
    /// activation(gate)·up in a feed-forward block. Where the file bounds this, the activation, which is SiLU there, makes at most as much
    /// of the gate as the bound, and up is within ± it.
    pub(super) fn gated_block(&mut self, [gate, up]: [ValueId; 2], roles: GateRoles) -> ValueId {
        let (c, width) = (self.config, self.graph.value(up).width);
        let block = c.blocks[self.layer_number()];
        let Some(limit) = c.gate_limits.get(block).copied().flatten() else {
            return self.push(Op::Gated(c.activation), &[gate, up], width, roles.gated);
        };
        // SiLU is x·σ(x), and never as far below 0 as a bound may be.
        let open = Op::Gated(Activation::Sigmoid);
        let open = self.push(open, &[gate, gate], width, roles.silu);
        let open = self.curve(Curve::Clamp { limit }, open, roles.silu_clamp);
        let up = self.curve(Curve::Clamp { limit }, up, roles.up_clamp);
        self.push(Op::Multiply, &[open, up], width, roles.gated)
    }
}
