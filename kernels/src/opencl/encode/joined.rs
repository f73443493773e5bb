//! Ops that are computed by one launch, because they read the same value, or one reads what the other
//! writes. Launches cost a GPU more than small ops do.

use super::nodes::{kv_rows, multiply};
use super::{Encoder, Stored};
use crate::device::DeviceError;
use crate::graph::{Node, WeightId};
use crate::op::{Activation, AttentionOp, Op};
use crate::opencl::model::Model;
use crate::opencl::ops::{KvWrite, MatMul, Rope, RopeHeads, RopeKv, View};
use std::sync::Arc;

impl Encoder<'_> {
    /// Adds the commands of as many nodes from `first` on as are computed together; returns their
    /// outputs, where a later node needs them. Returns none if the node is to be computed alone.
    pub(super) fn joined(&mut self, first: usize) -> Result<Vec<Option<Stored>>, DeviceError> {
        if !self.work.part.features.is_whole() {
            return Ok(Vec::new());
        }
        let graph = Arc::clone(&self.model.graph);
        let rest = &graph.nodes()[first..self.nodes.end];
        let within = |node: &Node| !self.writes.contains(&node.output);
        let joined = rest.iter().take(self.model.joins[first]);
        let count = joined.take_while(|node| within(node)).count();
        if let [gate, up, gated, ..] = rest
            && count == 2
            && let Op::Gated(activation) = gated.op
            && gated.inputs[..] == [gate.output, up.output]
            && [gate, up].iter().all(|node| self.model.last_uses[first + 2].contains(&node.output))
            && let Some(inner) = self.gated_matmuls([gate, up, gated], activation)?
        {
            return Ok(vec![None, None, Some(inner)]);
        }
        if count > 1 {
            let outputs = self.joined_matmuls(&rest[..count])?;
            return Ok(outputs.into_iter().map(Some).collect());
        }
        let [queries, keys, attention, ..] = rest else { return Ok(Vec::new()) };
        let dead = &self.model.last_uses[first + 2];
        let dies = |node: &Node| within(node) && dead.contains(&node.output);
        if !dies(queries) || !dies(keys) {
            return Ok(Vec::new());
        }
        self.rotated_attention([queries, keys, attention])
    }

    /// Norms a single row, multiplies it with two matrices, and multiplies the activation of one product
    /// with the other; none unless the row's norm has been left to its readers.
    fn gated_matmuls(
        &mut self,
        [gate, up, gated]: [&Node; 3],
        activation: Activation,
    ) -> Result<Option<Stored>, DeviceError> {
        let x = self.whole(gate, 0)?;
        let weights = weights_of([gate, up]);
        let widths = [gate, up].map(|node| self.model.graph.value(node.output).width);
        let is_even = widths[0] == widths[1];
        if x.norm.is_none() || !is_even || !self.model.weights.load_joined(&weights)? {
            return Ok(None);
        }
        let out = self.output(gated)?;
        let Model { kernels, weights: placed, .. } = &mut *self.model;
        let job = MatMul {
            x: x.view(),
            rows: 1,
            weight: &placed.matrix(weights[0]).matrix,
            channels: 0..widths[0],
            bias: None,
            residual: None,
            out: out.view(),
        };
        let added = multiply(kernels, placed, (job, x.norm), Some((activation, widths[0])));
        self.added(added, out).map(Some)
    }

    /// Multiplies a value with the matrices of several nodes, whose outputs lie side by side.
    fn joined_matmuls(&mut self, nodes: &[Node]) -> Result<Vec<Stored>, DeviceError> {
        let weights = weights_of(nodes);
        if !self.model.weights.load_joined(&weights)? {
            return Ok(Vec::new());
        }
        let x = self.whole(&nodes[0], 0)?;
        let rows = self.rows(nodes[0].output).len();
        let outputs = self.outputs(nodes, rows)?;
        let Model { kernels, weights: placed, .. } = &mut *self.model;
        let weight = &*placed.matrix(weights[0]).matrix;
        let job = MatMul {
            x: x.view(),
            rows,
            weight,
            channels: 0..weight.rows(),
            bias: None,
            residual: None,
            out: outputs[0].view(),
        };
        let added = multiply(kernels, placed, (job, x.norm), None);
        added.map_err(|error| self.failed(&error))?;
        Ok(outputs)
    }

    /// Rotates queries and keys, adds keys and values to the cache, and computes attention.
    fn rotated_attention(
        &mut self,
        [queries, keys, attention]: [&Node; 3],
    ) -> Result<Vec<Option<Stored>>, DeviceError> {
        let (Op::Rope { heads, rope }, Op::Rope { rope: of_keys, .. }, Op::Attention(op)) =
            (&queries.op, &keys.op, &attention.op)
        else {
            return Ok(Vec::new());
        };
        let reads = attention.inputs[..] == [queries.output, keys.output, attention.inputs[2]];
        if rope != of_keys || attention.inputs.len() != 3 || !reads {
            return Ok(Vec::new());
        }
        self.bring_pages(attention, op, true)?;
        let rotated = self.rotate_and_write([queries, keys, attention], op, (*heads, *rope))?;
        let mixed = self.attend(attention, op, &rotated)?;
        Ok(vec![None, None, Some(mixed)])
    }

    /// Rotates queries and keys, and adds keys and values to the cache; returns the queries.
    fn rotate_and_write(
        &mut self,
        [queries, keys, attention]: [&Node; 3],
        op: &AttentionOp,
        (heads, rope): (usize, usize),
    ) -> Result<Stored, DeviceError> {
        let (q, k) = (self.whole(queries, 0)?, self.whole(keys, 0)?);
        let v = self.whole(attention, 2)?;
        let (rows, out) = (self.rows(queries.output), self.output(queries)?);
        self.fill_angles(rope, rows.clone())?;
        let Model { kernels, kv, name, ropes, .. } = &mut *self.model;
        let to = kv_rows(kv, &self.ints, op.layer).map_err(|error| error.of_run(name))?;
        let (freqs, pairs) = &ropes[rope];
        let (stride, pairs) = (2 * freqs.pairs(), *pairs);
        let angles = View { buffer: self.angles[&rope].buffer(), at: 0, stride };
        let shape = RopeHeads { heads, head_dim: to.head_dim, dims: stride, pairs };
        let rows = rows.len();
        let queries = Rope { x: q.view(), rows, shape, angles, out: out.view() };
        let cache = KvWrite { k: k.view(), v: v.view(), rows, to };
        let added = kernels.rope_kv(&RopeKv { queries, cache });
        self.added(added, out)
    }
}

/// The matrices of matmuls.
fn weights_of<'a>(nodes: impl IntoIterator<Item = &'a Node>) -> Vec<WeightId> {
    let weights = nodes.into_iter().filter_map(|node| match node.op {
        Op::MatMul { weight, .. } => Some(weight),
        _ => None,
    });
    weights.collect()
}
