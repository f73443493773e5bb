//! Ops that are computed by one launch, because they read the same value, or one reads what the other
//! writes. Launches cost a GPU more than small ops do.

use super::nodes::{kv_rows, rotation};
use super::{Encoder, Normed, Stored};
use crate::model::Model;
use crate::ops::{Fused, KvWrite, MatMul, Norm, Rope, RopeKv};
use crate::weights::Placed;
use lapwing_model::device::DeviceError;
use lapwing_model::graph::{Node, WeightId};
use lapwing_model::op::{Activation, AttentionOp, Op};
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
            let gated = self.gated_after(first, count)?;
            return self.joined_matmuls(&rest[..count], gated);
        }
        let [queries, keys, attention, ..] = rest else { return Ok(Vec::new()) };
        let dead = &self.model.last_uses[first + 2];
        let dies = |node: &Node| within(node) && dead.contains(&node.output);
        if !dies(queries) || !dies(keys) {
            return Ok(Vec::new());
        }
        self.rotated_attention([queries, keys, attention])
    }

    /// Leaves a norm to the matmuls that read its output, if their kernels can compute it and nothing else reads it.
    /// Returns whether it is left.
    pub(super) fn norms_in_matmuls(&mut self, first: usize) -> Result<bool, DeviceError> {
        let graph = Arc::clone(&self.model.graph);
        let node = &graph.nodes()[first];
        let Op::RmsNorm { weight: Some(gain), group, eps } = node.op else { return Ok(false) };
        let id = node.output;
        let is_whole = self.work.part.features.is_whole()
            && group == graph.value(id).width
            && !self.writes.contains(&id);
        let last = (first..self.nodes.end).find(|at| self.model.last_uses[*at].contains(&id));
        let Some(last) = last.filter(|_| is_whole) else { return Ok(false) };
        let (x, rows) = (self.whole(node, 0)?, self.rows(id).len());
        for reader in
            graph.nodes()[first + 1..=last].iter().filter(|node| node.inputs.contains(&id))
        {
            let Op::MatMul { weight, .. } = reader.op else { return Ok(false) };
            let dtype = graph.weights()[weight.0].dtype;
            let fuses = self.model.kernels.fuses(dtype, rows, x.view());
            if !fuses.map_err(|error| self.failed(&error))? {
                return Ok(false);
            }
        }
        self.model.weights.load_vector(gain)?;
        self.norms.insert(id, Normed { x, gain, eps });
        Ok(true)
    }

    /// The rows that a matmul multiplies, with the gain and the epsilon of their norm if that is left to it.
    pub(super) fn normed(
        &mut self,
        node: &Node,
    ) -> Result<(Stored, Option<(WeightId, f32)>), DeviceError> {
        match self.norms.get(&node.inputs[0]) {
            Some(Normed { x, gain, eps }) => Ok((x.clone(), Some((*gain, *eps)))),
            None => Ok((self.whole(node, 0)?, None)),
        }
    }

    /// The gated activation after two joined matmuls, if their kernel computes it as well. Nothing else may read their
    /// outputs.
    fn gated_after(
        &mut self,
        first: usize,
        count: usize,
    ) -> Result<Option<(usize, Activation)>, DeviceError> {
        let (graph, at) = (Arc::clone(&self.model.graph), first + count);
        if count != 2 || at >= self.nodes.end {
            return Ok(None);
        }
        let [gate, up, gated] = &graph.nodes()[first..=at] else { return Ok(None) };
        let (Op::Gated(activation), Op::MatMul { weight, .. }) = (&gated.op, &gate.op) else {
            return Ok(None);
        };
        let dead = &self.model.last_uses[at];
        if gated.inputs != [gate.output, up.output]
            || !gated.inputs.iter().all(|id| dead.contains(id))
        {
            return Ok(None);
        }
        let (x, _) = self.normed(gate)?;
        let (dtype, rows) = (graph.weights()[weight.0].dtype, self.rows(gate.output).len());
        let fuses = self.model.kernels.fuses(dtype, rows, x.view());
        let fuses = fuses.map_err(|error| self.failed(&error))?;
        Ok(fuses.then_some((at, *activation)))
    }

    /// Multiplies a value with the matrices of several nodes, whose outputs lie side by side. With `gated`, the node of a
    /// gated activation, the same kernel computes that, and its output is the only one.
    fn joined_matmuls(
        &mut self,
        nodes: &[Node],
        gated: Option<(usize, Activation)>,
    ) -> Result<Vec<Option<Stored>>, DeviceError> {
        let weights = nodes.iter().filter_map(|node| match node.op {
            Op::MatMul { weight, .. } => Some(weight),
            _ => None,
        });
        let weights: Vec<WeightId> = weights.collect();
        if !self.model.weights.load_joined(&weights)? {
            return Ok(Vec::new());
        }
        let (x, norm) = self.normed(&nodes[0])?;
        let rows = self.rows(nodes[0].output).len();
        let mut outputs: Vec<Option<Stored>> = vec![None; nodes.len()];
        match gated {
            Some((at, _)) => {
                let graph = Arc::clone(&self.model.graph);
                outputs.push(Some(self.output(&graph.nodes()[at])?));
            }
            None => outputs = self.outputs(nodes, rows)?.into_iter().map(Some).collect(),
        }
        let out = outputs.iter().flatten().next().expect("an output");
        let width: usize = nodes.iter().map(|node| self.columns_of(node.output).len()).sum();
        let Model { kernels, weights: placed, .. } = &mut *self.model;
        // The buffer may have matrices of further nodes, which are not in this stage.
        let Placed { matrix, first } = placed.matrix(weights[0]);
        let norm = norm.map(|(gain, eps)| Norm { gain: placed.vector(gain), eps });
        let gate = gated.map(|(_, activation)| activation);
        let job = MatMul {
            x: x.view(),
            rows,
            weight: matrix,
            channels: *first..first + width,
            bias: None,
            residual: None,
            fused: Fused { norm, gate },
            out: out.view(),
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
        let rotated = self.rotate_and_write([queries, keys, attention], op, *heads, *rope)?;
        let mixed = self.attend(attention, op, &rotated)?;
        Ok(vec![None, None, Some(mixed)])
    }

    /// Rotates queries and keys, and adds keys and values to the cache; returns the queries.
    fn rotate_and_write(
        &mut self,
        [queries, keys, attention]: [&Node; 3],
        op: &AttentionOp,
        heads: usize,
        rope: usize,
    ) -> Result<Stored, DeviceError> {
        let (q, k) = (self.whole(queries, 0)?, self.whole(keys, 0)?);
        let v = self.whole(attention, 2)?;
        let (rows, out) = (self.rows(queries.output), self.output(queries)?);
        self.fill_angles(rope, rows.clone())?;
        let Model { kernels, kv, name, ropes, .. } = &mut *self.model;
        let to = kv_rows(kv, &self.ints, op.layer).map_err(|error| error.of_run(name))?;
        let (shape, angles) = rotation(&ropes[rope], &self.angles[&rope], heads, to.dims.key);
        let rows = rows.len();
        let queries = Rope { x: q.view(), rows, shape, angles, out: out.view() };
        let cache = KvWrite { k: k.view(), v: v.view(), rows, to };
        let job = RopeKv { queries, cache };
        let batch = &self.work.payload.batch;
        let added = kv.write(op.layer, batch, |rows| kernels.rope_kv(&job.part(rows)));
        added.map_err(|error| error.of_run(name))?;
        Ok(out)
    }
}
