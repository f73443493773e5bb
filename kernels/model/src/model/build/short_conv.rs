//! Gated convolutions over a few rows, in place of attention (LFM2, 2025).

use super::super::ModelError;
use super::Builder;
use super::weights::Joined;
use crate::graph::ValueId;
use crate::op::{Op, ShortConvOp};

impl Builder<'_> {
    /// Three products b, c, u of `x` with parts of one matrix make c · conv(b · u), and that a projection.
    pub(crate) fn gated_short_conv(&mut self, x: ValueId) -> Result<ValueId, ModelError> {
        const NAME: &str = "shortconv.in_proj";
        let (width, layer) = (self.config.width, self.layer_number());
        let mut part = |place: usize, role| {
            let rows = place * width..(place + 1) * width;
            self.joined_part(role, x, &Joined { name: NAME, all: 3 * width, rows })
        };
        let (b, c, u) = (part(0, "conv_gate")?, part(1, "conv_out_gate")?, part(2, "conv_in")?);
        let gated = self.push(Op::Multiply, &[b, u], width, "conv_gated");
        let rows = self.config.states[layer][0] / width + 1;
        let weight = self.matrix(&self.name("shortconv.conv.weight"), width, rows)?;
        let state = self.config.state_layer(layer);
        let op = ShortConvOp { weight, bias: None, is_silu: false, state };
        let mixed = self.push(Op::ShortConv(op), &[gated], width, "conv");
        let out = self.push(Op::Multiply, &[c, mixed], width, "conv_out_gated");
        self.linear("shortconv.out_proj", out, width)
    }
}
