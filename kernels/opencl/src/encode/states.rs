//! The commands of ops with a state of the rows before.

use super::{Encoder, Stored};
use crate::model::Model;
use crate::ops::{LinearAttention, ShortConv, StateRows};
use lapwing_model::device::DeviceError;
use lapwing_model::graph::Node;
use lapwing_model::op::{LinearAttentionOp, ShortConvOp};

impl Encoder<'_> {
    pub(super) fn short_conv(
        &mut self,
        node: &Node,
        op: ShortConvOp,
    ) -> Result<Stored, DeviceError> {
        self.model.weights.load_by_column(&node.op)?;
        op.bias.map_or(Ok(()), |bias| self.model.weights.load_vector(bias))?;
        self.bring_states(node, op.state)?;
        let (x, out) = (self.whole(node, 0)?, self.output(node)?);
        let (rows, width) = self.size(node);
        let taps = self.model.graph.weights()[op.weight.0].cols;
        let Model { kernels, weights, kv, name, .. } = &mut *self.model;
        let states = kv.state(op.state).map_err(|error| error.of_run(name))?;
        let added = kernels.short_conv(&ShortConv {
            x: x.view(),
            width,
            weights: weights.vector(op.weight),
            taps,
            bias: op.bias.map(|bias| weights.vector(bias)),
            is_silu: op.is_silu,
            state: StateRows { states, spans: self.ints.spans(), rows },
            out: out.view(),
        });
        self.added(added, out)
    }

    pub(super) fn linear_attention(
        &mut self,
        node: &Node,
        op: &LinearAttentionOp,
    ) -> Result<Stored, DeviceError> {
        op.skip.map_or(Ok(()), |skip| self.model.weights.load_vector(skip))?;
        self.model.weights.load_by_column(&node.op)?;
        self.bring_states(node, op.state)?;
        let mut input = |index| self.whole(node, index);
        let inputs = [input(0)?, input(1)?, input(2)?, input(3)?, input(4)?];
        let (out, (rows, _)) = (self.output(node)?, self.size(node));
        let factors = self.model.graph.value(node.inputs[3]).width / op.heads;
        let Model { kernels, weights, kv, name, .. } = &mut *self.model;
        let states = kv.state(op.state).map_err(|error| error.of_run(name))?;
        let added = kernels.linear_attention(&LinearAttention {
            op,
            inputs: inputs.each_ref().map(Stored::view),
            factors,
            skip: op.skip.map(|skip| weights.vector(skip)),
            decays: op.decay.map(|decay| weights.vector(decay)),
            state: StateRows { states, spans: self.ints.spans(), rows },
            out: out.view(),
        });
        self.added(added, out)
    }

    /// Copies the states to the device that the batch needs and that are not there. All of its rows must be here, and none of them
    /// a draft beside others.
    fn bring_states(&mut self, node: &Node, state: usize) -> Result<(), DeviceError> {
        let spans = &self.work.payload.batch.spans;
        if self.work.part.rows.is_some() {
            return Err(self.unsupported(node, "some rows"));
        }
        if spans.iter().any(|span| span.fork.is_some()) {
            return Err(self.unsupported(node, "branches of a token tree"));
        }
        for span in spans {
            self.model.kv.bring_states(state, &span.states, self.commands)?;
        }
        Ok(())
    }
}
