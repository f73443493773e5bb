//! Ops with a state beside keys and values.

use super::ops::OpRun;
use super::stage::Stage;
use crate::short_conv::{ShortConv, short_conv};
use lapwing_model::device::DeviceError;
use lapwing_model::graph::WeightId;

impl OpRun<'_> {
    /// Convolves the rows, and makes the last ones the state.
    pub(super) fn short_conv(
        &self,
        weight: WeightId,
        state: usize,
        x: &[f32],
        out: &mut [f32],
    ) -> Result<(), DeviceError> {
        let Stage { model, part, batch, .. } = self.stage;
        if part.rows.is_some() {
            return Err(self.stage.unsupported(self.node, "some rows"));
        }
        if batch.spans.iter().any(|span| span.fork.is_some()) {
            return Err(self.stage.unsupported(self.node, "branches of a token tree"));
        }
        let width = model.graph.value(self.node.output).width;
        let mut state = model.kv.state(state);
        let conv = ShortConv { x, width, taps: model.weights.vector(weight) };
        short_conv(&model.cpu, &conv, &batch.spans, &state, out);
        for span in &batch.spans {
            let x = &x[span.rows.start * width..span.rows.end * width];
            state.keep_rows(span, x, width);
        }
        Ok(())
    }
}
