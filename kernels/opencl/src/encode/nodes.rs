//! The commands of each op.

use std::ops::Range;

use super::norms::LayerNormOf;
use super::{Encoder, Stored};
use crate::error::OpenClError;
use crate::inputs::{BatchInts, angles_of};
use crate::kv::DeviceKv;
use crate::memory::Place;
use crate::model::{Model, Rotary};
use crate::ops::{
    Add, Attention, Curved, Fused, Gated, HeadDims, KvRows, KvWrite, MatMul, Norm, RmsNorm, Rope,
    RopeHeads, Unary, UnaryOp, View,
};
use crate::weights::Placed;
use lapwing_model::device::DeviceError;
use lapwing_model::graph::{Node, WeightId};
use lapwing_model::mask::Mask;
use lapwing_model::op::{AttentionOp, Op};

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
        let (x, norm) = self.normed(node)?;
        let last = residual.map_or(node, |(add, _)| add);
        let residual = residual.map(|(add, index)| self.columns(add, index)).transpose()?;
        let out = self.output(last)?;
        let (rows, channels) = (self.rows(node.output).len(), self.columns_of(node.output));
        let Model { kernels, weights, .. } = &mut *self.model;
        let Placed { matrix, first } = weights.matrix(weight);
        let norm = norm.map(|(gain, eps)| Norm { gain: weights.vector(gain), eps });
        let job = MatMul {
            x: x.view(),
            rows,
            weight: matrix,
            channels: first + channels.start..first + channels.end,
            bias: bias.map(|bias| weights.vector(bias)),
            residual: residual.as_ref().map(Stored::view),
            fused: Fused { norm, gate: None },
            out: out.view(),
        };
        let added = kernels.matmul(&job);
        self.added(added, out)
    }

    /// Adds the commands of one node.
    pub(super) fn node(&mut self, node: &Node) -> Result<Stored, DeviceError> {
        match &node.op {
            Op::MatMul { .. } => self.matmul(node, None),
            Op::Gated(_)
            | Op::Add
            | Op::Scale { .. }
            | Op::ScaleBy { .. }
            | Op::SoftCap { .. }
            | Op::Multiply
            | Op::Curve(_) => self.element_wise(node),
            Op::AddRow { .. } | Op::Temperature(_) | Op::Given => {
                Err(self.unsupported(node, "an OpenCL device"))
            }
            _ if !self.work.part.features.is_whole() => {
                Err(self.unsupported(node, "some features"))
            }
            Op::Embed { table, scale } => self.embed(node, *table, *scale),
            Op::LayerNorm { group, weight, bias, eps } => {
                let norm = LayerNormOf { group: *group, weight: *weight, bias: *bias, eps: *eps };
                self.layer_norm(node, &norm)
            }
            Op::Excess { deviations } => self.excess(node, *deviations),
            Op::WithLength => self.with_length(node),
            Op::Route(op) => self.route(node, op),
            Op::Experts(op) => self.experts(node, op),
            Op::Mix { used, is_weighted } => self.mix(node, *used, *is_weighted),
            Op::WeightedSum { first } => self.weighted_sum(node, *first),
            Op::Lookup { table, scale } => self.lookup(node, *table, *scale),
            Op::Columns { first, times } => self.some_columns(node, *first, *times),
            Op::JoinHeads { heads, is_shared } => self.join_heads(node, *heads, *is_shared),
            Op::ShortConv(op) => self.short_conv(node, *op),
            Op::LinearAttention(op) => self.linear_attention(node, op),
            Op::RmsNorm { weight, group, eps } => self.rms_norm(node, *weight, *group, *eps),
            Op::Rope { heads, rope } => self.rope(node, *heads, *rope),
            Op::Attention(op) if op.alibi.is_some() => {
                Err(self.unsupported(node, "linear biases of attention"))
            }
            Op::Attention(op) => self.attention(node, op),
            Op::SelectRows => self.select_rows(node),
        }
    }

    /// Rows and columns of the part's output.
    pub(super) fn size(&self, node: &Node) -> (usize, usize) {
        (self.rows(node.output).len(), self.columns_of(node.output).len())
    }

    /// The output, unless its commands could not be added.
    pub(super) fn added(
        &self,
        added: Result<(), OpenClError>,
        out: Stored,
    ) -> Result<Stored, DeviceError> {
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
        if let Op::ScaleBy { weight } = node.op {
            return self.scale_by(node, &first, weight);
        }
        let stored = self.output(node)?;
        let (a, b, out) = (first.view(), second.view(), stored.view());
        let kernels = &mut self.model.kernels;
        let added = match node.op {
            Op::Gated(activation) => {
                kernels.gated(&Gated { activation, gate: a, up: b, rows, width, out })
            }
            Op::Scale { factor: number } => {
                kernels.unary(&Unary { op: UnaryOp::Scale, x: a, rows, width, number, out })
            }
            Op::Curve(curve) => kernels.curve(&Curved { curve, x: a, rows, width, out }),
            Op::SoftCap { cap: number } => {
                kernels.unary(&Unary { op: UnaryOp::SoftCap, x: a, rows, width, number, out })
            }
            Op::Multiply => kernels.mul(&Add { a, b, rows, width, out }),
            _ => kernels.add(&Add { a, b, rows, width, out }),
        };
        self.added(added, stored)
    }

    fn rms_norm(
        &mut self,
        node: &Node,
        weight: Option<WeightId>,
        len: usize,
        eps: f32,
    ) -> Result<Stored, DeviceError> {
        match weight {
            Some(weight) => self.model.weights.load_vector(weight)?,
            None => self.model.weights.load_ones(len)?,
        }
        let (x, out) = (self.whole(node, 0)?, self.output(node)?);
        let (rows, width) = self.size(node);
        let Model { kernels, weights, .. } = &mut *self.model;
        let added = kernels.rms_norm(&RmsNorm {
            x: x.view(),
            rows,
            groups: width / len,
            weight: weight.map_or_else(|| weights.ones(), |weight| weights.vector(weight)),
            len,
            eps,
            out: out.view(),
        });
        self.added(added, out)
    }

    fn rope(&mut self, node: &Node, heads: usize, rope: usize) -> Result<Stored, DeviceError> {
        let (x, out) = (self.whole(node, 0)?, self.output(node)?);
        let (rows, width) = self.size(node);
        self.fill_angles(rope, self.rows(node.output))?;
        let (shape, angles) =
            rotation(&self.model.ropes[rope], &self.angles[&rope], heads, width / heads);
        let job = Rope { x: x.view(), rows, shape, angles, out: out.view() };
        let added = self.model.kernels.rope(&job);
        self.added(added, out)
    }

    /// Gives the angles of the part's rows to the device, unless it has them.
    pub(super) fn fill_angles(
        &mut self,
        rope: usize,
        rows: Range<usize>,
    ) -> Result<(), DeviceError> {
        if self.angles.contains_key(&rope) {
            return Ok(());
        }
        let positions = &self.work.payload.batch.positions[rows];
        let freqs = &self.model.ropes[rope].freqs;
        let angles = angles_of(freqs, positions, &self.model.memory, self.commands);
        let angles = angles.map_err(|error| self.failed(&error))?;
        self.angles.insert(rope, angles);
        Ok(())
    }

    fn attention(&mut self, node: &Node, op: &AttentionOp) -> Result<Stored, DeviceError> {
        let q = self.whole(node, 0)?;
        let new = match node.inputs.len() {
            1 => None,
            _ => Some((self.whole(node, 1)?, self.whole(node, 2)?)),
        };
        self.bring_pages(node, op, new.is_some())?;
        let rows = self.work.payload.batch.rows();
        if let Some((k, v)) = new {
            let Model { kernels, kv, name, .. } = &mut *self.model;
            let to = kv_rows(kv, &self.ints, op.layer).map_err(|error| error.of_run(name))?;
            let job = KvWrite { k: k.view(), v: v.view(), rows, to };
            let batch = &self.work.payload.batch;
            let added = kv.write(op.layer, batch, |rows| kernels.kv_write(&job.part(rows)));
            added.map_err(|error| error.of_run(name))?;
        }
        self.attend(node, op, &q)
    }

    /// Copies the KV pages to the device that attention needs and that are not there.
    pub(super) fn bring_pages(
        &mut self,
        node: &Node,
        op: &AttentionOp,
        writes: bool,
    ) -> Result<(), DeviceError> {
        if self.work.part.rows.is_some() {
            return Err(self.unsupported(node, "some rows"));
        }
        for span in &self.work.payload.batch.spans {
            self.model.kv.bring(op.layer, writes, span, self.commands)?;
        }
        Ok(())
    }

    /// Attention of queries whose keys and values are in the cache.
    pub(super) fn attend(
        &mut self,
        node: &Node,
        op: &AttentionOp,
        q: &Stored,
    ) -> Result<Stored, DeviceError> {
        let window = match op.seen() {
            Mask::Causal => None,
            Mask::Window(window) => Some(window),
            mask => return Err(self.unsupported(node, &format!("the mask {mask}"))),
        };
        op.sinks.map_or(Ok(()), |sinks| self.model.weights.load_vector(sinks))?;
        let out = self.output(node)?;
        let rows = self.work.payload.batch.rows();
        let width = self.model.graph.value(node.inputs[0]).width;
        let Model { kernels, kv, weights, name, .. } = &mut *self.model;
        let from = kv_rows(kv, &self.ints, op.layer).map_err(|error| error.of_run(name))?;
        let heads = width / from.dims.key;
        let job = Attention {
            q: q.view(),
            rows,
            heads,
            from,
            window,
            scale: op.scale,
            soft_cap: op.soft_cap,
            sinks: op.sinks.map(|sinks| weights.vector(sinks)),
            out: out.view(),
        };
        let added = kernels.attention(&job);
        self.added(added, out)
    }
}

/// The rotation of heads, and its angles in the device's memory.
pub(super) fn rotation<'a>(
    rotary: &Rotary,
    angles: &'a Place,
    heads: usize,
    head_dim: usize,
) -> (RopeHeads, View<'a>) {
    let dims = 2 * rotary.freqs.pairs();
    let angles = View { buffer: angles.buffer(), at: 0, stride: dims };
    (RopeHeads { heads, head_dim, dims, pairs: rotary.pairs }, angles)
}

/// Where the batch's rows are in the KV cache of a layer.
pub(super) fn kv_rows<'a>(
    kv: &'a DeviceKv,
    ints: &'a BatchInts,
    layer: usize,
) -> Result<KvRows<'a>, OpenClError> {
    let heads = kv.store().layout().layer(layer).heads;
    Ok(KvRows {
        kv: kv.layer(layer)?,
        kv_heads: heads.count,
        dims: HeadDims { key: heads.key_dim, value: heads.value_dim },
        positions: ints.positions(),
        row_pages: ints.row_pages(),
        pages: ints.pages(),
    })
}
