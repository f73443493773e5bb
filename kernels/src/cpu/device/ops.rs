//! One op over the rows and features of a part.

use super::scratch::{Angles, Spans};
use super::stage::Stage;
use crate::cpu::{
    AttentionJob, AttentionMask, AttentionSpan, EmbedError, RopeShape, Turn, add, attention,
    embed_rows, gated, matmul, rms_norm, rope, soft_cap,
};
use crate::device::{DeviceError, Slot};
use crate::graph::Node;
use crate::op::{AttentionOp, Op};

/// An op and what it computes from.
pub(super) struct OpRun<'a> {
    pub(super) stage: Stage<'a>,
    pub(super) node: &'a Node,
    pub(super) angles: &'a Angles,
    /// Of an attention: the rotation of its keys, if it is left to it.
    pub(super) keys: Option<&'a Node>,
}

impl OpRun<'_> {
    pub(super) fn compute(&self, spans: &mut Spans) -> Result<Slot, DeviceError> {
        let Stage { device, part, batch, .. } = self.stage;
        let (cpu, spec) = (&device.cpu, device.graph.value(self.node.output));
        let columns = |index| self.stage.columns(self.node, index);
        let whole = |index| self.stage.whole(self.node, index);
        let mut out = self.stage.output(self.node);
        match &self.node.op {
            Op::MatMul { weight, bias } => {
                let features = part.features.of_width(spec.width);
                let bias = bias.map(|b| &device.weights.vector(b)[features.clone()]);
                let weight = device.weights.packed(*weight).features(features);
                matmul(cpu, &weight, whole(0)?, bias, &mut out);
            }
            Op::Gated(activation) => gated(cpu, *activation, &columns(0)?, &columns(1)?, &mut out),
            Op::Add => add(cpu, &columns(0)?, &columns(1)?, &mut out),
            Op::SoftCap { cap } => {
                out.copy_from_slice(&columns(0)?);
                soft_cap(cpu, &mut out, *cap);
            }
            _ if !part.features.is_whole() => {
                return Err(self.stage.unsupported(self.node, "some features"));
            }
            Op::Embed { table, scale } => {
                let ids = &batch.ids[part.rows_of(spec, batch)];
                embed_rows(cpu, device.table(*table)?, ids, *scale, &mut out).map_err(
                    |EmbedError::Id { id, rows }| DeviceError::TokenId { id, vocab: rows },
                )?;
            }
            Op::RmsNorm { weight, eps } => {
                rms_norm(cpu, whole(0)?, device.weights.vector(*weight), *eps, &mut out);
            }
            Op::Rope { heads, rope: index } => {
                let shape = self.shape(self.node, *heads, *index);
                rope(cpu, whole(0)?, shape, self.angles.of(*index), &mut out);
            }
            Op::Attention(op) => self.attend(op, spans, &mut out)?,
            Op::SelectRows => {
                let (x, width) = (whole(0)?, spec.width);
                for (out, row) in out.chunks_exact_mut(width).zip(&batch.selected) {
                    out.copy_from_slice(&x[row * width..(row + 1) * width]);
                }
            }
        }
        Ok(out)
    }

    fn shape(&self, node: &Node, heads: usize, rope: usize) -> RopeShape {
        let device = self.stage.device;
        let head_dim = device.graph.value(node.output).width / heads;
        RopeShape { heads, head_dim, pairs: device.ropes[rope].1 }
    }

    fn attend(
        &self,
        op: &AttentionOp,
        spans: &mut Spans,
        out: &mut [f32],
    ) -> Result<(), DeviceError> {
        let Stage { device, part, batch, .. } = self.stage;
        if part.rows.is_some() {
            return Err(self.stage.unsupported(self.node, "some rows"));
        }
        if batch.rows() == 0 {
            return Ok(());
        }
        let [q, v] = [0, 2].map(|index| self.stage.whole(self.node, index));
        let (q, v) = (q?, v?);
        let k = match self.keys {
            Some(rope) => self.stage.whole(rope, 0)?,
            None => self.stage.whole(self.node, 1)?,
        };
        let turn = |first: usize| match self.keys?.op {
            Op::Rope { heads, rope } => {
                Some(Turn::new(self.angles.of(rope), self.shape(self.keys?, heads, rope), first))
            }
            _ => None,
        };
        let mut kv = device.kv.layer(op.layer);
        let layout = *kv.layout();
        let width = layout.kv_heads * layout.head_dim;
        for span in &batch.spans {
            let values = span.rows.start * width..span.rows.end * width;
            let (at, kv_rows) = ((&span.pages[..], span.start), (&k[values.clone()], &v[values]));
            kv.write_rotated(&device.cpu, at, kv_rows, turn(span.rows.start));
        }
        let all = batch.spans.iter().map(|span| AttentionSpan {
            rows: span.rows.clone(),
            start_pos: span.start,
            pages: &span.pages,
        });
        spans.with(all, |spans| {
            let job = AttentionJob {
                kv: &kv,
                q,
                spans,
                heads: q.len() / batch.rows() / layout.head_dim,
                scale: op.scale,
                mask: op.window.map_or(AttentionMask::Causal, AttentionMask::Window),
                soft_cap: op.soft_cap,
            };
            attention(&device.cpu, &job, out);
        });
        Ok(())
    }
}
