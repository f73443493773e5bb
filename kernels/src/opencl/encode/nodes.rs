//! The commands of each op.

use std::ops::Range;
use std::sync::Arc;

use super::{Encoder, Stored};
use crate::device::DeviceError;
use crate::graph::{Node, WeightId};
use crate::mask::Mask;
use crate::op::{AttentionOp, Op};
use crate::opencl::error::OpenClError;
use crate::opencl::inputs::angles_of;
use crate::opencl::model::Model;
use crate::opencl::weights::Placed;
use crate::opencl::ops::{
    Add, Attention, Embed, Gated, KvRows, KvWrite, MatMul, RmsNorm, Rope, RopeHeads, SelectRows,
    SoftCap, View,
};

impl Encoder<'_> {
    /// Adds the commands of a matmul, and of the sum that is fused with it.
    pub(super) fn matmul(
        &mut self,
        node: &Node,
        residual: Option<(&Node, usize)>,
    ) -> Result<Stored, DeviceError> {
        let Op::MatMul { weight, bias } = node.op else { unreachable!("a matmul") };
        self.model.weights.load_matrix(weight)?;
        bias.map_or(Ok(()), |bias| self.model.weights.load_vector(bias))?;
        let x = self.whole(node, 0)?;
        let residual = residual.map(|(add, index)| self.columns(add, index)).transpose()?;
        let out = self.output(node)?;
        let (rows, channels) = (self.rows(node.output).len(), self.columns_of(node.output));
        let Model { kernels, weights, .. } = &mut *self.model;
        let Placed { matrix, first } = weights.matrix(weight);
        let added = kernels.matmul(&MatMul {
            x: x.view(),
            rows,
            weight: matrix,
            channels: first + channels.start..first + channels.end,
            bias: bias.map(|bias| weights.vector(bias)),
            residual: residual.as_ref().map(Stored::view),
            out: out.view(),
        });
        self.added(added, out)
    }

    /// Adds the commands of as many nodes from `first` on as are computed by one launch; returns their
    /// outputs, or none if the node is to be computed alone.
    pub(super) fn joined(&mut self, first: usize) -> Result<Vec<Stored>, DeviceError> {
        let graph = Arc::clone(&self.model.graph);
        let within = |nodes: &&Node| !self.writes.contains(&nodes.output);
        let rest = &graph.nodes()[first..self.nodes.end];
        if !self.work.part.features.is_whole() {
            return Ok(Vec::new());
        }
        let count = rest.iter().take(self.model.joins[first]).take_while(within).count();
        if count > 1 {
            return self.joined_matmuls(&rest[..count]);
        }
        match rest {
            [queries, keys, ..] if within(&queries) && within(&keys) => {
                self.joined_ropes(queries, keys)
            }
            _ => Ok(Vec::new()),
        }
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
        let Model { kernels, weights: placed, .. } = &mut *self.model;
        let weight = &*placed.matrix(weights[0]).matrix;
        let added = kernels.matmul(&MatMul {
            x: x.view(),
            rows,
            weight,
            channels: 0..weight.rows(),
            bias: None,
            residual: None,
            out: outputs[0].view(),
        });
        added.map_err(|error| self.failed(&error))?;
        Ok(outputs)
    }

    /// Rotates queries and keys that lie side by side.
    fn joined_ropes(&mut self, queries: &Node, keys: &Node) -> Result<Vec<Stored>, DeviceError> {
        let (Op::Rope { heads, rope }, Op::Rope { heads: kv_heads, rope: of_keys }) =
            (&queries.op, &keys.op)
        else {
            return Ok(Vec::new());
        };
        let (q, k) = (self.whole(queries, 0)?, self.whole(keys, 0)?);
        let width = self.model.graph.value(queries.output).width;
        let is_beside = Arc::ptr_eq(&q.buffer, &k.buffer)
            && q.stride == k.stride
            && q.at + width == k.at
            && self.rows(queries.output) == self.rows(keys.output);
        if !is_beside || rope != of_keys {
            return Ok(Vec::new());
        }
        let rows = self.rows(queries.output);
        let outputs = self.outputs(&[queries.clone(), keys.clone()], rows.len())?;
        self.rotate(*rope, (heads + kv_heads, width / heads), (q.view(), outputs[0].view()), rows)?;
        Ok(outputs)
    }

    /// Adds the commands of one node.
    pub(super) fn node(&mut self, node: &Node) -> Result<Stored, DeviceError> {
        match &node.op {
            Op::MatMul { .. } => self.matmul(node, None),
            Op::Gated(_) | Op::Add | Op::SoftCap { .. } => self.element_wise(node),
            _ if !self.work.part.features.is_whole() => {
                Err(self.unsupported(node, "some features"))
            }
            Op::Embed { table, scale } => self.embed(node, *table, *scale),
            Op::RmsNorm { weight, eps } => self.rms_norm(node, *weight, *eps),
            Op::Rope { heads, rope } => self.rope(node, *heads, *rope),
            Op::Attention(op) => self.attention(node, op),
            Op::SelectRows => {
                let (x, out) = (self.whole(node, 0)?, self.output(node)?);
                let ((rows, width), selected) = (self.size(node), self.ints.selected());
                let job = SelectRows { x: x.view(), selected, rows, width, out: out.view() };
                let added = self.model.kernels.select_rows(&job);
                self.added(added, out)
            }
        }
    }

    /// Rows and columns of the part's output.
    fn size(&self, node: &Node) -> (usize, usize) {
        (self.rows(node.output).len(), self.columns_of(node.output).len())
    }

    /// The output, unless its commands could not be added.
    fn added(&self, added: Result<(), OpenClError>, out: Stored) -> Result<Stored, DeviceError> {
        added.map_err(|error| self.failed(&error))?;
        Ok(out)
    }

    fn element_wise(&mut self, node: &Node) -> Result<Stored, DeviceError> {
        let (rows, width) = self.size(node);
        let first = self.columns(node, 0)?;
        let second = match node.inputs.len() {
            2 => self.columns(node, 1)?,
            _ => first.clone(),
        };
        let stored = self.output(node)?;
        let (a, b, out) = (first.view(), second.view(), stored.view());
        let kernels = &mut self.model.kernels;
        let added = match node.op {
            Op::Gated(activation) => {
                kernels.gated(&Gated { activation, gate: a, up: b, rows, width, out })
            }
            Op::SoftCap { cap } => kernels.soft_cap(&SoftCap { x: a, rows, width, cap, out }),
            _ => kernels.add(&Add { a, b, rows, width, out }),
        };
        self.added(added, stored)
    }

    fn embed(&mut self, node: &Node, table: WeightId, scale: f32) -> Result<Stored, DeviceError> {
        let rows = self.rows(node.output);
        let ids = &self.work.payload.batch.ids[rows.clone()];
        let vocab = self.model.graph.weights()[table.0].rows;
        if let Some(id) = ids.iter().copied().find(|id| *id as usize >= vocab) {
            return Err(DeviceError::TokenId { id, vocab });
        }
        self.model.weights.load_matrix(table)?;
        let out = self.output(node)?;
        let (ids, rows) = (self.ints.ids(rows.start), rows.len());
        let Model { kernels, weights, .. } = &mut *self.model;
        let table = &*weights.matrix(table).matrix;
        let added = kernels.embed(&Embed { ids, rows, table, scale, out: out.view() });
        self.added(added, out)
    }

    fn rms_norm(&mut self, node: &Node, weight: WeightId, eps: f32) -> Result<Stored, DeviceError> {
        self.model.weights.load_vector(weight)?;
        let (x, out) = (self.whole(node, 0)?, self.output(node)?);
        let (rows, width) = self.size(node);
        let len = self.model.graph.weights()[weight.0].cols;
        let Model { kernels, weights, .. } = &mut *self.model;
        let added = kernels.rms_norm(&RmsNorm {
            x: x.view(),
            rows,
            groups: width / len,
            weight: weights.vector(weight),
            len,
            eps,
            out: out.view(),
        });
        self.added(added, out)
    }

    fn rope(&mut self, node: &Node, heads: usize, rope: usize) -> Result<Stored, DeviceError> {
        let (x, out) = (self.whole(node, 0)?, self.output(node)?);
        let (rows, width) = (self.rows(node.output), self.size(node).1);
        self.rotate(rope, (heads, width / heads), (x.view(), out.view()), rows)?;
        Ok(out)
    }

    /// Rotates heads of some width.
    fn rotate(
        &mut self,
        rope: usize,
        (heads, head_dim): (usize, usize),
        (x, out): (View<'_>, View<'_>),
        rows: Range<usize>,
    ) -> Result<(), DeviceError> {
        self.fill_angles(rope, rows.clone())?;
        let (freqs, pairs) = &self.model.ropes[rope];
        let (stride, pairs) = (2 * freqs.pairs(), *pairs);
        let angles = View { buffer: self.angles[&rope].buffer(), at: 0, stride };
        let shape = RopeHeads { heads, head_dim, dims: stride, pairs };
        let job = Rope { x, rows: rows.len(), shape, angles, out };
        self.model.kernels.rope(&job).map_err(|error| self.failed(&error))
    }

    /// Copies the angles of the part's rows to the device, unless they are there.
    fn fill_angles(&mut self, rope: usize, rows: Range<usize>) -> Result<(), DeviceError> {
        if self.angles.contains_key(&rope) {
            return Ok(());
        }
        let positions = &self.work.payload.batch.positions[rows];
        let freqs = &self.model.ropes[rope].0;
        let angles = angles_of(freqs, positions, &self.model.pool, self.commands);
        let angles = angles.map_err(|error| self.failed(&error))?;
        self.angles.insert(rope, angles);
        Ok(())
    }

    fn attention(&mut self, node: &Node, op: &AttentionOp) -> Result<Stored, DeviceError> {
        if self.work.part.rows.is_some() {
            return Err(self.unsupported(node, "some rows"));
        }
        let window = match op.seen() {
            Mask::Causal => None,
            Mask::Window(window) => Some(window),
            mask => return Err(self.unsupported(node, &format!("the mask {mask}"))),
        };
        let q = self.whole(node, 0)?;
        let new = match node.inputs.len() {
            1 => None,
            _ => Some((self.whole(node, 1)?, self.whole(node, 2)?)),
        };
        let out = self.output(node)?;
        let (work, rows) = (self.work, self.work.payload.batch.rows());
        for span in &work.payload.batch.spans {
            self.model.kv.bring((op.layer, new.is_some()), span, self.commands)?;
        }
        let layout = *self.model.kv.store().layout();
        let heads = self.model.graph.value(node.inputs[0]).width / layout.head_dim;
        let Model { kernels, kv, name, .. } = &mut *self.model;
        let buffer = kv.layer(op.layer).map_err(|error| error.of_run(name))?;
        let cache = KvRows {
            kv: buffer,
            kv_heads: layout.kv_heads,
            head_dim: layout.head_dim,
            positions: self.ints.positions(),
            row_pages: self.ints.row_pages(),
            pages: self.ints.pages(),
        };
        let written = new.as_ref().map_or(Ok(()), |(k, v)| {
            kernels.kv_write(&KvWrite { k: k.view(), v: v.view(), rows, to: cache })
        });
        let added = written.and_then(|()| {
            kernels.attention(&Attention {
                q: q.view(),
                rows,
                heads,
                from: cache,
                window,
                scale: op.scale,
                soft_cap: op.soft_cap,
                out: out.view(),
            })
        });
        self.added(added, out)
    }
}
