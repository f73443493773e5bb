//! Turns a stage into commands: one or more launches for each node.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use super::commands::Commands;
use super::error::OpenClError;
use super::inputs::{BatchInts, angles_of};
use super::model::Model;
use super::ops::{
    Add, Attention, Embed, Gated, KvRows, KvWrite, MatMul, RmsNorm, Rope, RopeHeads, SelectRows,
    SoftCap, View,
};
use super::pool::Pooled;
use super::values::Value;
use crate::device::{DeviceError, Work};
use crate::graph::{Node, ValueId};
use crate::mask::Mask;
use crate::op::{AttentionOp, Op};

/// A value in the device's memory: some rows and columns of it.
#[derive(Clone)]
pub(super) struct Stored {
    pub(super) buffer: Arc<Pooled>,
    /// Element of the first row and column.
    at: usize,
    /// Elements from row to row.
    stride: usize,
    /// Whether it has only the part's columns.
    is_part: bool,
}

impl Stored {
    fn view(&self) -> View<'_> {
        View { buffer: self.buffer.buffer(), at: self.at, stride: self.stride }
    }
}

/// A stage that is being turned into commands.
pub(super) struct Encoder<'a> {
    pub(super) model: &'a mut Model,
    pub(super) commands: &'a mut Commands,
    pub(super) work: &'a Work,
    pub(super) nodes: Range<usize>,
    /// Values that later stages read.
    pub(super) writes: &'a [ValueId],
    inputs: HashMap<ValueId, Stored>,
    /// Values of the stage, by node.
    written: Vec<Option<Stored>>,
    ints: BatchInts,
    /// Angles of each rotary embedding of the graph that the stage uses.
    angles: HashMap<usize, Pooled>,
}

impl<'a> Encoder<'a> {
    /// Copies the batch to the device.
    pub(super) fn new(
        model: &'a mut Model,
        commands: &'a mut Commands,
        work: &'a Work,
        (nodes, writes): (Range<usize>, &'a [ValueId]),
    ) -> Result<Encoder<'a>, DeviceError> {
        let ints = BatchInts::upload(&work.payload.batch, &model.pool, commands);
        let ints = ints.map_err(|error| error.of_run(&model.name))?;
        let written = Vec::with_capacity(nodes.len());
        let (inputs, angles) = (HashMap::new(), HashMap::new());
        Ok(Encoder { model, commands, work, nodes, writes, inputs, written, ints, angles })
    }

    /// Adds the commands of all nodes.
    pub(super) fn encode(&mut self) -> Result<(), DeviceError> {
        let graph = Arc::clone(&self.model.graph);
        let mut next = self.nodes.start;
        while next < self.nodes.end {
            let node = &graph.nodes()[next];
            let residual = self.residual_after(next);
            let output = match residual {
                // The sum takes the place of the product, which nothing else reads.
                Some((add, index)) => {
                    self.written.push(None);
                    self.matmul(node, Some((&graph.nodes()[add], index)))?
                }
                None => self.node(node)?,
            };
            self.written.push(Some(output));
            let done = next..next + 1 + usize::from(residual.is_some());
            for dead in self.model.last_uses[done.clone()].iter().flatten() {
                let at = dead.0.checked_sub(self.nodes.start);
                let stored = at.and_then(|at| self.written.get_mut(at));
                if let Some(stored) = stored
                    && !self.writes.contains(dead)
                {
                    *stored = None;
                }
            }
            next = done.end;
        }
        Ok(())
    }

    /// A value that the stage has written.
    pub(super) fn take(&mut self, id: ValueId) -> Option<Stored> {
        self.written.get_mut(id.0.checked_sub(self.nodes.start)?)?.take()
    }

    /// The node of the sum that follows a matmul and is its only reader, with the index of the sum's
    /// other input.
    fn residual_after(&self, node: usize) -> Option<(usize, usize)> {
        let (graph, add) = (&self.model.graph, node + 1);
        let nodes = graph.nodes();
        let is_pair = add < self.nodes.end
            && matches!(nodes[node].op, Op::MatMul { .. })
            && matches!(nodes[add].op, Op::Add);
        let id = nodes[node].output;
        if !is_pair || self.writes.contains(&id) || !self.model.last_uses[add].contains(&id) {
            return None;
        }
        let [a, b] = nodes[add].inputs[..] else { return None };
        match (a == id, b == id) {
            (true, false) => Some((add, 1)),
            (false, true) => Some((add, 0)),
            _ => None,
        }
    }

    fn failed(&self, error: &OpenClError) -> DeviceError {
        error.of_run(&self.model.name)
    }

    fn unsupported(&self, node: &Node, what: &str) -> DeviceError {
        DeviceError::Unsupported {
            device: self.model.name.clone(),
            what: format!("{} '{}' over {what}", node.op.name(), node.role),
        }
    }

    /// Rows of a value that the part has.
    fn rows(&self, id: ValueId) -> Range<usize> {
        self.work.part.rows_of(self.model.graph.value(id), &self.work.payload.batch)
    }

    /// Columns of a value that the part has.
    fn columns_of(&self, id: ValueId) -> Range<usize> {
        self.work.part.features.of_width(self.model.graph.value(id).width)
    }

    /// Memory for a node's output.
    fn output(&self, node: &Node) -> Result<Stored, DeviceError> {
        let stride = self.columns_of(node.output).len();
        let bytes = self.rows(node.output).len() * stride * size_of::<f32>();
        let buffer = self.model.pool.take(bytes).map_err(|error| self.failed(&error))?;
        Ok(Stored { buffer: Arc::new(buffer), at: 0, stride, is_part: true })
    }

    /// The part's rows of an input, with all columns, or those of the part if this stage wrote it.
    fn input(&mut self, node: &Node, index: usize) -> Result<Stored, DeviceError> {
        let id = node.inputs[index];
        let missing = DeviceError::MissingValue { value: id.0, role: node.role };
        if let Some(at) = id.0.checked_sub(self.nodes.start) {
            return self.written.get(at).and_then(Option::as_ref).cloned().ok_or(missing);
        }
        if let Some(stored) = self.inputs.get(&id) {
            return Ok(stored.clone());
        }
        let tensor = self.work.payload.values.get(id).ok_or(missing)?;
        let (rows, stride) = (self.rows(id), tensor.width);
        let stored = match tensor.device_buffer() {
            Some(buffer) => {
                let other = DeviceError::OtherMemory { value: id.0 };
                let value = buffer.as_any().downcast_ref::<Value>();
                let value = value.filter(|value| value.domain == self.model.domain).ok_or(other)?;
                let (buffer, at) = (Arc::clone(&value.buffer), rows.start * stride);
                Stored { buffer, at, stride, is_part: false }
            }
            None => {
                let elements = rows.start * stride..rows.end * stride;
                let buffer = self.model.pool.take(elements.len() * size_of::<f32>());
                let buffer = buffer.map_err(|error| self.failed(&error))?;
                let value = (id, elements);
                let added = self.commands.upload_value(buffer.buffer(), &self.work.payload, value);
                added.map_err(|error| self.failed(&error))?;
                Stored { buffer: Arc::new(buffer), at: 0, stride, is_part: false }
            }
        };
        self.inputs.insert(id, stored.clone());
        Ok(stored)
    }

    /// As [`input`](Encoder::input), with all columns.
    fn whole(&mut self, node: &Node, index: usize) -> Result<Stored, DeviceError> {
        let stored = self.input(node, index)?;
        if stored.is_part && !self.work.part.features.is_whole() {
            return Err(self.unsupported(node, "a value of which only some features are here"));
        }
        Ok(stored)
    }

    /// As [`input`](Encoder::input), with the part's columns.
    fn columns(&mut self, node: &Node, index: usize) -> Result<Stored, DeviceError> {
        let mut stored = self.input(node, index)?;
        if !stored.is_part {
            stored.at += self.columns_of(node.inputs[index]).start;
        }
        Ok(stored)
    }

    /// Adds the commands of a matmul, and of the sum that is fused with it.
    fn matmul(
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
        let added = kernels.matmul(&MatMul {
            x: x.view(),
            rows,
            weight: weights.matrix(weight),
            channels,
            bias: bias.map(|bias| weights.vector(bias)),
            residual: residual.as_ref().map(Stored::view),
            out: out.view(),
        });
        added.map_err(|error| self.failed(&error))?;
        Ok(out)
    }

    /// Adds the commands of one node.
    fn node(&mut self, node: &Node) -> Result<Stored, DeviceError> {
        let (rows, width) = (self.rows(node.output).len(), self.columns_of(node.output).len());
        let added = match &node.op {
            Op::MatMul { .. } => return self.matmul(node, None),
            Op::Gated(activation) => {
                let (gate, up) = (self.columns(node, 0)?, self.columns(node, 1)?);
                let out = self.output(node)?;
                let (gate, up) = (gate.view(), up.view());
                let activation = *activation;
                let job = Gated { activation, gate, up, rows, width, out: out.view() };
                (self.model.kernels.gated(&job), out)
            }
            Op::Add => {
                let (a, b) = (self.columns(node, 0)?, self.columns(node, 1)?);
                let out = self.output(node)?;
                let job = Add { a: a.view(), b: b.view(), rows, width, out: out.view() };
                (self.model.kernels.add(&job), out)
            }
            Op::SoftCap { cap } => {
                let (x, out) = (self.columns(node, 0)?, self.output(node)?);
                let job = SoftCap { x: x.view(), rows, width, cap: *cap, out: out.view() };
                (self.model.kernels.soft_cap(&job), out)
            }
            _ if !self.work.part.features.is_whole() => {
                return Err(self.unsupported(node, "some features"));
            }
            Op::Embed { table, scale } => {
                let ids = &self.work.payload.batch.ids[self.rows(node.output)];
                let vocab = self.model.graph.weights()[table.0].rows;
                if let Some(id) = ids.iter().copied().find(|id| *id as usize >= vocab) {
                    return Err(DeviceError::TokenId { id, vocab });
                }
                self.model.weights.load_matrix(*table)?;
                let out = self.output(node)?;
                let ids = self.ints.ids(self.rows(node.output).start);
                let Model { kernels, weights, .. } = &mut *self.model;
                let (table, scale) = (weights.matrix(*table), *scale);
                (kernels.embed(&Embed { ids, rows, table, scale, out: out.view() }), out)
            }
            Op::RmsNorm { weight, eps } => {
                self.model.weights.load_vector(*weight)?;
                let (x, out) = (self.whole(node, 0)?, self.output(node)?);
                let len = self.model.graph.weights()[weight.0].cols;
                let Model { kernels, weights, .. } = &mut *self.model;
                let added = kernels.rms_norm(&RmsNorm {
                    x: x.view(),
                    rows,
                    groups: width / len,
                    weight: weights.vector(*weight),
                    len,
                    eps: *eps,
                    out: out.view(),
                });
                (added, out)
            }
            Op::Rope { heads, rope } => {
                let (x, out) = (self.whole(node, 0)?, self.output(node)?);
                self.fill_angles(*rope, self.rows(node.output))?;
                let (freqs, pairs) = &self.model.ropes[*rope];
                let angles = &self.angles[rope];
                let stride = 2 * freqs.pairs();
                let added = self.model.kernels.rope(&Rope {
                    x: x.view(),
                    rows,
                    shape: RopeHeads {
                        heads: *heads,
                        head_dim: width / heads,
                        dims: stride,
                        pairs: *pairs,
                    },
                    angles: View { buffer: angles.buffer(), at: 0, stride },
                    out: out.view(),
                });
                (added, out)
            }
            Op::Attention(op) => return self.attention(node, op),
            Op::SelectRows => {
                let (x, out) = (self.whole(node, 0)?, self.output(node)?);
                let selected = self.ints.selected();
                let job = SelectRows { x: x.view(), selected, rows, width, out: out.view() };
                (self.model.kernels.select_rows(&job), out)
            }
        };
        let (added, out) = added;
        added.map_err(|error| self.failed(&error))?;
        Ok(out)
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
        let [q, k, v] = [0, 1, 2].map(|index| self.whole(node, index));
        let (q, k, v) = (q?, k?, v?);
        let out = self.output(node)?;
        let (work, rows) = (self.work, self.work.payload.batch.rows());
        for span in &work.payload.batch.spans {
            self.model.kv.bring(op.layer, span, self.commands)?;
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
        let write = KvWrite { k: k.view(), v: v.view(), rows, to: cache };
        let added = kernels.kv_write(&write).and_then(|()| {
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
        added.map_err(|error| self.failed(&error))?;
        Ok(out)
    }
}
