//! Ops that are computed by one launch, because they read the same value, or one reads what the other
//! writes. Launches cost a GPU more than small ops do.

use super::nodes::{kv_rows, rotation};
use super::{Encoder, Stored};
use crate::device::DeviceError;
use crate::graph::{Node, WeightId};
use crate::op::{AttentionOp, Op};
use crate::opencl::inputs::kv_writes;
use crate::opencl::model::Model;
use crate::opencl::ops::{KvWrite, MatMul, Rope, RopeKv};
use crate::opencl::weights::Placed;
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

    /// Multiplies a value with the matrices of several nodes, whose outputs lie side by side.
    fn joined_matmuls(&mut self, nodes: &[Node]) -> Result<Vec<Stored>, DeviceError> {
        let weights = nodes.iter().filter_map(|node| match node.op {
            Op::MatMul { weight, .. } => Some(weight),
            _ => None,
        });
        let weights: Vec<WeightId> = weights.collect();
        if !self.model.weights.load_joined(&weights)? {
            return Ok(Vec::new());
        }
        let x = self.whole(&nodes[0], 0)?;
        let rows = self.rows(nodes[0].output).len();
        let outputs = self.outputs(nodes, rows)?;
        let width: usize = nodes.iter().map(|node| self.columns_of(node.output).len()).sum();
        let Model { kernels, weights: placed, .. } = &mut *self.model;
        // The buffer may have matrices of further nodes, which are not in this stage.
        let Placed { matrix, first } = placed.matrix(weights[0]);
        let job = MatMul {
            x: x.view(),
            rows,
            weight: matrix,
            channels: *first..first + width,
            bias: None,
            residual: None,
            out: outputs[0].view(),
        };
        let added = kernels.matmul(&job);
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
        let [q, k, _] = attention.inputs[..] else { return Ok(Vec::new()) };
        if rope != of_keys || [q, k] != [queries.output, keys.output] {
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
        let (shape, angles) = rotation(&ropes[rope], &self.angles[&rope], (heads, to.head_dim));
        let rows = rows.len();
        let queries = Rope { x: q.view(), rows, shape, angles, out: out.view() };
        let cache = KvWrite { k: k.view(), v: v.view(), rows, to };
        let job = RopeKv { queries, cache };
        for (copy, rows) in kv_writes(&self.work.payload.batch) {
            let copied = copy.map_or(Ok(()), |pages| kv.copy_page(op.layer, pages));
            let added = copied.and_then(|()| kernels.rope_kv(&job.part(rows)));
            added.map_err(|error| error.of_run(name))?;
        }
        Ok(out)
    }
}
