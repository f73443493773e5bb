//! Ops with a state beside keys and values.

use super::ops::OpRun;
use super::stage::Stage;
use crate::linear_attention::{LinearAttention, WideRows, linear_attention};
use crate::short_conv::{ShortConv, short_conv};
use lapwing_model::device::DeviceError;
use lapwing_model::kv::StateLayer;
use lapwing_model::op::{LinearAttentionOp, ShortConvOp};

impl OpRun<'_> {
    /// Convolves the rows, and makes the last ones the state.
    pub(super) fn short_conv(&self, op: ShortConvOp, out: &mut [f32]) -> Result<(), DeviceError> {
        self.check_rows()?;
        let Stage { model, batch, .. } = self.stage;
        let WideRows { x, width } = self.wide_rows(0)?;
        let vector = |id| model.weights.vector(id);
        let (taps, bias, is_silu) = (vector(op.weight), op.bias.map(vector), op.is_silu);
        let mut state = self.state(op.state)?;
        let conv = ShortConv { x, width, taps, bias, is_silu };
        short_conv(&model.cpu, &conv, &batch.spans, &state, out);
        for span in &batch.spans {
            let x = &x[span.rows.start * width..span.rows.end * width];
            state.keep_rows(span, x, width);
        }
        Ok(())
    }

    /// Adds the rows to the states of their sequences, and makes what they read.
    pub(super) fn linear_attention(
        &self,
        op: &LinearAttentionOp,
        out: &mut [f32],
    ) -> Result<(), DeviceError> {
        self.check_rows()?;
        let Stage { model, batch, .. } = self.stage;
        let input = |index| self.wide_rows(index);
        let inputs = [input(0)?, input(1)?, input(2)?, input(3)?, input(4)?];
        let [skip, decays] = [op.skip, op.decay].map(|id| id.map(|id| model.weights.vector(id)));
        let job = LinearAttention { op, inputs, skip, decays };
        linear_attention(&model.cpu, &job, &batch.spans, &mut self.state(op.state)?, out);
        Ok(())
    }

    /// The states of a layer, those of the batch's sequences current on the host.
    fn state(&self, state: usize) -> Result<StateLayer<'_>, DeviceError> {
        let Stage { model, batch, .. } = self.stage;
        let mut layer = model.kv.state(state);
        for span in &batch.spans {
            layer.bring_to_host(&span.states)?;
        }
        Ok(layer)
    }

    /// Checks that all rows are there, and none of them is a draft.
    fn check_rows(&self) -> Result<(), DeviceError> {
        let Stage { part, batch, .. } = self.stage;
        if part.rows.is_some() {
            return Err(self.stage.unsupported(self.node, "some rows"));
        }
        if batch.spans.iter().any(|span| span.fork.is_some()) {
            return Err(self.stage.unsupported(self.node, "branches of a token tree"));
        }
        Ok(())
    }

    /// An input.
    fn wide_rows(&self, index: usize) -> Result<WideRows<'_>, DeviceError> {
        let width = self.stage.model.graph.value(self.node.inputs[index]).width;
        Ok(WideRows { x: self.stage.whole(self.node, index)?, width })
    }
}
