//! One op over the rows and features of a part.

use std::borrow::Cow;

use super::CpuDevice;
use crate::cpu::{
    AttentionJob, AttentionMask, AttentionSpan, EmbedError, RopeAngles, RopeShape, add, attention,
    embed_rows, gated, matmul, rms_norm, rope, soft_cap,
};
use crate::device::{Batch, DeviceError, Slot, TensorSet};
use crate::graph::Node;
use crate::op::{AttentionOp, Op};
use crate::part::Part;

/// An op and what it computes from.
pub(super) struct OpRun<'a> {
    pub(super) device: &'a CpuDevice,
    pub(super) node: &'a Node,
    pub(super) part: &'a Part,
    pub(super) batch: &'a Batch,
    pub(super) angles: &'a [RopeAngles],
    pub(super) inputs: &'a TensorSet,
    /// First node of the stage, and the values written since. Value numbers are node numbers.
    pub(super) written: (usize, &'a [Option<Slot>]),
}

impl OpRun<'_> {
    pub(super) fn compute(&self) -> Result<Slot, DeviceError> {
        let CpuDevice { cpu, graph, slots, .. } = self.device;
        let spec = graph.value(self.node.output);
        let rows = self.part.rows_of(spec, self.batch);
        let features = self.part.features.of_width(spec.width);
        let mut out = slots.take(rows.len() * features.len());
        match &self.node.op {
            Op::MatMul { weight, bias } => {
                let weights = &self.device.weights;
                let bias = bias.map(|b| &weights.vector(b)[features.clone()]);
                matmul(
                    cpu,
                    &weights.packed(*weight).features(features),
                    self.whole(0)?,
                    bias,
                    &mut out,
                );
                return Ok(out);
            }
            Op::Gated(activation) => {
                gated(cpu, *activation, &self.columns(0)?, &self.columns(1)?, &mut out);
                return Ok(out);
            }
            Op::Add => {
                add(cpu, &self.columns(0)?, &self.columns(1)?, &mut out);
                return Ok(out);
            }
            Op::SoftCap { cap } => {
                out.copy_from_slice(&self.columns(0)?);
                soft_cap(cpu, &mut out, *cap);
                return Ok(out);
            }
            _ => {}
        }
        if !self.part.features.is_whole() {
            return Err(self.unsupported("some features"));
        }
        match &self.node.op {
            Op::Embed { table, scale } => {
                let ids = &self.batch.ids[rows];
                embed_rows(cpu, self.device.table(*table)?, ids, *scale, &mut out).map_err(
                    |EmbedError::Id { id, rows }| DeviceError::TokenId { id, vocab: rows },
                )?;
            }
            Op::RmsNorm { weight, eps } => {
                rms_norm(cpu, self.whole(0)?, self.device.weights.vector(*weight), *eps, &mut out);
            }
            Op::Rope { heads, rope: index } => {
                let pairs = self.device.ropes[*index].1;
                let shape = RopeShape { heads: *heads, head_dim: spec.width / heads, pairs };
                rope(cpu, self.whole(0)?, shape, &self.angles[*index], &mut out);
            }
            Op::Attention(op) => self.attend(op, &mut out)?,
            Op::SelectRows => {
                let (x, width) = (self.whole(0)?, spec.width);
                for (out, row) in out.chunks_exact_mut(width).zip(&self.batch.selected) {
                    out.copy_from_slice(&x[row * width..(row + 1) * width]);
                }
            }
            Op::MatMul { .. } | Op::Gated(_) | Op::Add | Op::SoftCap { .. } => {}
        }
        Ok(out)
    }

    fn attend(&self, op: &AttentionOp, out: &mut [f32]) -> Result<(), DeviceError> {
        if self.part.rows.is_some() {
            return Err(self.unsupported("some rows"));
        }
        let (q, k, v) = (self.whole(0)?, self.whole(1)?, self.whole(2)?);
        let mut kv = self.device.kv.layer(op.layer);
        let layout = *kv.layout();
        let width = layout.kv_heads * layout.head_dim;
        let mut spans = Vec::with_capacity(self.batch.spans.len());
        for span in &self.batch.spans {
            let values = span.rows.start * width..span.rows.end * width;
            kv.write(&self.device.cpu, &span.pages, span.start, (&k[values.clone()], &v[values]));
            spans.push(AttentionSpan {
                rows: span.rows.clone(),
                start_pos: span.start,
                pages: &span.pages,
            });
        }
        let job = AttentionJob {
            kv: &kv,
            q,
            spans: &spans,
            heads: q.len() / self.batch.rows() / layout.head_dim,
            scale: op.scale,
            mask: op.window.map_or(AttentionMask::Causal, AttentionMask::Window),
            soft_cap: op.soft_cap,
        };
        attention(&self.device.cpu, &job, out);
        Ok(())
    }

    /// The part's rows of an input, with all features.
    fn whole(&self, index: usize) -> Result<&[f32], DeviceError> {
        let (values, is_part) = self.input(index)?;
        if is_part && !self.part.features.is_whole() {
            return Err(self.unsupported("a value of which only some features are here"));
        }
        Ok(values)
    }

    /// The part's rows of an input, with the part's features.
    fn columns(&self, index: usize) -> Result<Cow<'_, [f32]>, DeviceError> {
        let (values, is_part) = self.input(index)?;
        if is_part || self.part.features.is_whole() {
            return Ok(Cow::Borrowed(values));
        }
        let width = self.device.graph.value(self.node.inputs[index]).width;
        let features = self.part.features.of_width(width);
        let rows = values.chunks_exact(width).flat_map(|row| &row[features.clone()]);
        Ok(Cow::Owned(rows.copied().collect()))
    }

    /// The part's rows of an input, and whether it holds the part's features only because it was
    /// written in this stage.
    fn input(&self, index: usize) -> Result<(&[f32], bool), DeviceError> {
        let id = self.node.inputs[index];
        let missing = DeviceError::MissingValue { value: id.0, role: self.node.role };
        let (first, written) = self.written;
        if let Some(at) = id.0.checked_sub(first) {
            let slot = written.get(at).and_then(Option::as_ref).ok_or(missing)?;
            return Ok((slot, true));
        }
        let tensor = self.inputs.get(id).ok_or(missing)?;
        let rows = self.part.rows_of(self.device.graph.value(id), self.batch);
        Ok((&tensor.data[rows.start * tensor.width..rows.end * tensor.width], false))
    }

    fn unsupported(&self, what: &str) -> DeviceError {
        let Node { op, role, .. } = self.node;
        DeviceError::Unsupported {
            device: self.device.name.clone(),
            what: format!("{} '{role}' over {what}", op.name()),
        }
    }
}
