//! First launches of the kernels of ops with a state.

use super::WIDTH;
use crate::error::OpenClError;
use crate::ops::kernels::Kernels;
use crate::ops::states::{LinearAttention, ShortConv, Spans, StateRows};
use crate::ops::views::{F32, Ints, View};
use crate::session::Buffer;
use lapwing_model::op::{KeyOrder, LinearAttentionOp, StateRule};

/// One row of one sequence at its beginning.
const SPAN: [i32; 7] = [0, 1, 0, -1, 0, 0, 0];

impl Kernels {
    /// Launches the kernels that the model has.
    pub(super) fn warm_states(&mut self, x: &Buffer, y: &Buffer) -> Result<(), OpenClError> {
        const WHAT: &str = "warming up";
        let dims = self.spec.key_dims.clone();
        if !self.spec.convolves && dims.is_empty() {
            return Ok(());
        }
        let session = std::sync::Arc::clone(&self.session);
        let ints = session.filled(bytemuck::cast_slice(&SPAN), WHAT)?;
        let ints = Ints { buffer: &ints, at: 0 };
        let spans = Spans { row_spans: ints, spans: ints, count: 1 };
        let view = |buffer| View { buffer, at: 0, stride: WIDTH };
        let (weights, bias, out) = (x, Some(x), view(y));
        if self.spec.convolves {
            let states = session.buffer(WIDTH * F32, WHAT)?;
            let state = StateRows { states: &states, spans, rows: 1 };
            let (width, taps, is_silu) = (WIDTH, 2, true);
            let x = view(x);
            self.short_conv(&ShortConv { x, width, weights, taps, bias, is_silu, state, out })?;
        }
        for key_dim in dims {
            let values = LinearAttentionOp::state_values(1, key_dim, 1);
            let (states, zeros) = (
                session.buffer(values * F32, WHAT)?,
                session.filled(&vec![0; key_dim * F32], WHAT)?,
            );
            let op = LinearAttentionOp {
                heads: 1,
                key_heads: 1,
                key_order: KeyOrder::Blocks,
                key_dim,
                value_dim: 1,
                first: [0; 3],
                rule: StateRule::Delta,
                scale: 1.0,
                skip: None,
                decay: None,
                state: 0,
            };
            let inputs = [View { buffer: &zeros, at: 0, stride: key_dim }; 5];
            let state = StateRows { states: &states, spans, rows: 1 };
            let (skip, decays) = (None, None);
            self.linear_attention(&LinearAttention {
                op: &op,
                inputs,
                factors: 1,
                skip,
                decays,
                state,
                out,
            })?;
        }
        session.finish()
    }
}
