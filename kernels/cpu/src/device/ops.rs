//! Runs one op over the rows and columns of a part.

use super::scratch::{Angles, ExpertLoads, Sequences};
use super::stage::Stage;
use crate::attention::{AttentionJob, AttentionSequence, attention};
use crate::elementwise::{
    SomeColumns, add, columns, curve, gated, multiply, scale, scale_by, scale_rows, soft_cap,
};
use crate::gemm::{NextDispatch, matmul};
use crate::join_heads::{JoinedHeads, join_heads};
use crate::kv_rows::KvRows;
use crate::layer_norm::{NormGroups, layer_norm};
use crate::loops::layer_norm::LayerNormWeights;
use crate::loops::rope::RopeShape;
use crate::rms_norm::rms_norm;
use crate::rope::{Rotation, rope};
use crate::sums::{Summands, add_weighted, excess, with_length};
use lapwing_model::device::{DeviceError, Slot};
use lapwing_model::graph::Node;
use lapwing_model::kv::KvAccess;
use lapwing_model::op::{AttentionOp, Op, Temperature};
use std::cell::RefCell;

/// Arguments of one op.
pub(super) struct OpRun<'a> {
    pub(super) stage: Stage<'a>,
    pub(super) node: &'a Node,
    pub(super) angles: &'a Angles,
    /// Where experts write how their rows are divided.
    pub(super) loads: &'a RefCell<ExpertLoads>,
    /// For attention: the rotation of its keys, if it is fused.
    pub(super) keys: Option<&'a Node>,
    /// For experts: data that threads will most likely read after their weights.
    pub(super) after: NextDispatch<'a>,
}

impl OpRun<'_> {
    pub(super) fn compute(&self, sequences: &mut Sequences) -> Result<Slot, DeviceError> {
        let Stage { model, part, .. } = self.stage;
        let (cpu, spec) = (&model.cpu, model.graph.value(self.node.output));
        let whole = |index| self.stage.whole(self.node, index);
        let mut out = self.stage.output(self.node);
        match &self.node.op {
            Op::MatMul { weight, bias } => {
                let features = part.features.of_width(spec.width);
                let bias = bias.map(|b| &model.weights.vector(b)[features.clone()]);
                let weight = model.weights.packed(*weight).channels(features);
                matmul(cpu, &weight, whole(0)?, bias, &mut out);
            }
            Op::Gated(_)
            | Op::Curve(_)
            | Op::Add
            | Op::Multiply
            | Op::Scale { .. }
            | Op::ScaleBy { .. }
            | Op::SoftCap { .. } => self.element_wise(&mut out)?,
            _ if !part.features.is_whole() => {
                return Err(self.stage.unsupported(self.node, "some features"));
            }
            Op::Embed { table, scale } | Op::Lookup { table, scale } => {
                self.embed(*table, *scale, &mut out)?;
            }
            Op::Given => self.given(&mut out)?,
            Op::RmsNorm { weight, group, eps } => {
                rms_norm(cpu, whole(0)?, model.weights.gains(*weight, *group), *eps, &mut out);
            }
            Op::LayerNorm { group, weight, bias, eps } => {
                let [weight, bias] = [weight, bias].map(|id| id.map(|id| model.weights.vector(id)));
                let weights = LayerNormWeights { weight, bias, eps: *eps };
                let groups = NormGroups { width: spec.width, group: *group };
                layer_norm(cpu, whole(0)?, groups, &weights, &mut out);
            }
            Op::Excess { deviations } => {
                excess(cpu, whole(0)?, spec.width, *deviations, &mut out);
            }
            Op::WithLength => with_length(cpu, whole(0)?, whole(1)?, spec.width, &mut out),
            Op::WeightedSum { first } => self.weighted_sum(*first, &mut out)?,
            Op::Temperature(temperature) => self.temper(*temperature, whole(0)?, &mut out),
            Op::AddRow { table, row } => self.add_row(*table, *row, &mut out)?,
            Op::Rope { heads, rope: index } => {
                let shape = self.shape(self.node, *heads, *index);
                rope(cpu, whole(0)?, shape, self.angles.of(*index), &mut out);
            }
            Op::Attention(op) => self.attend(op, sequences, &mut out)?,
            Op::ShortConv(op) => self.short_conv(*op, &mut out)?,
            Op::LinearAttention(op) => self.linear_attention(op, &mut out)?,
            Op::Route(_) | Op::Experts(_) | Op::Mix { .. } => self.mixture(&mut out)?,
            &Op::Columns { first, times } => {
                let width = model.graph.value(self.node.inputs[0]).width;
                let count = spec.width / times;
                columns(cpu, whole(0)?, SomeColumns { width, first, count, times }, &mut out);
            }
            &Op::JoinHeads { heads, is_shared } => {
                let widths = [0, 1].map(|at| model.graph.value(self.node.inputs[at]).width);
                let joined = JoinedHeads { heads, widths, is_shared };
                join_heads(cpu, whole(0)?, whole(1)?, joined, &mut out);
            }
            Op::SelectRows => self.selected(whole(0)?, &mut out),
        }
        Ok(out)
    }

    /// The rows of a value that go on.
    fn selected(&self, x: &[f32], out: &mut [f32]) {
        let Stage { model, batch, .. } = self.stage;
        let of = |value| model.graph.value(value);
        let (from, to) = (of(self.node.inputs[0]), of(self.node.output));
        match batch.kept_rows(from.rows, to.rows) {
            None => out.copy_from_slice(&x[..out.len()]),
            Some(rows) => {
                for (out, row) in out.chunks_exact_mut(to.width).zip(rows) {
                    out.copy_from_slice(&x[row * to.width..][..to.width]);
                }
            }
        }
    }

    /// Ops whose values depend on those at their places in the inputs.
    fn element_wise(&self, out: &mut [f32]) -> Result<(), DeviceError> {
        let Stage { model, part, .. } = self.stage;
        let (cpu, spec) = (&model.cpu, model.graph.value(self.node.output));
        let columns = |index| self.stage.columns(self.node, index);
        match &self.node.op {
            Op::Gated(activation) => gated(cpu, *activation, &columns(0)?, &columns(1)?, out),
            Op::Curve(form) => curve(cpu, *form, &columns(0)?, out),
            Op::Add => add(cpu, &columns(0)?, &columns(1)?, out),
            Op::Multiply => multiply(cpu, &columns(0)?, &columns(1)?, out),
            Op::Scale { factor } => {
                out.copy_from_slice(&columns(0)?);
                scale(cpu, out, *factor);
            }
            Op::ScaleBy { weight } => {
                out.copy_from_slice(&columns(0)?);
                let columns = part.features.of_width(spec.width);
                scale_by(cpu, out, model.weights.factors(*weight, columns));
            }
            Op::SoftCap { cap } => {
                out.copy_from_slice(&columns(0)?);
                soft_cap(cpu, out, *cap);
            }
            other => return Err(self.stage.unsupported(self.node, other.name())),
        }
        Ok(())
    }

    /// Adds a few values at a time.
    fn weighted_sum(&self, first: usize, out: &mut [f32]) -> Result<(), DeviceError> {
        const TOGETHER: usize = 4;
        let Stage { model, .. } = self.stage;
        let width = model.graph.value(self.node.output).width;
        let whole = |index| self.stage.whole(self.node, index);
        let factors = whole(1)?;
        out.copy_from_slice(whole(0)?);
        let added = 2..self.node.inputs.len();
        for start in added.clone().step_by(TOGETHER) {
            let mut values = [&[][..]; TOGETHER];
            let count = TOGETHER.min(added.end - start);
            for (value, index) in values.iter_mut().zip(start..added.end) {
                *value = whole(index)?;
            }
            let (values, first) = (&values[..count], first + start - added.start);
            add_weighted(&model.cpu, out, width, &Summands { values, factors, first });
        }
        Ok(())
    }

    fn temper(&self, temperature: Temperature, x: &[f32], out: &mut [f32]) {
        let Stage { model, part, batch, .. } = self.stage;
        let spec = model.graph.value(self.node.output);
        let first = part.rows_of(spec, batch).start;
        let factor = |row: usize| temperature.factor(batch.positions[first + row]);
        out.copy_from_slice(x);
        scale_rows(&model.cpu, out, spec.width, factor);
    }

    fn shape(&self, node: &Node, heads: usize, rope: usize) -> RopeShape {
        let model = self.stage.model;
        let head_dim = model.graph.value(node.output).width / heads;
        RopeShape { heads, head_dim, pairs: model.ropes[rope].1 }
    }

    fn attend(
        &self,
        op: &AttentionOp,
        sequences: &mut Sequences,
        out: &mut [f32],
    ) -> Result<(), DeviceError> {
        let Stage { model, part, batch, .. } = self.stage;
        if part.rows.is_some() {
            return Err(self.stage.unsupported(self.node, "some rows"));
        }
        if batch.rows() == 0 {
            return Ok(());
        }
        let q = self.stage.whole(self.node, 0)?;
        let new = match (self.node.inputs.len(), self.keys) {
            (1, _) => None,
            (_, Some(rope)) => Some((self.stage.whole(rope, 0)?, self.stage.whole(self.node, 2)?)),
            (_, None) => Some((self.stage.whole(self.node, 1)?, self.stage.whole(self.node, 2)?)),
        };
        let turn = |first: usize| match self.keys?.op {
            Op::Rope { heads, rope } => Some(Rotation::new(
                self.angles.of(rope),
                self.shape(self.keys?, heads, rope),
                first,
            )),
            _ => None,
        };
        let mask = op.seen();
        let mut kv = model.kv.layer(op.layer);
        let layout = *kv.layout();
        let (key_width, value_width) = (layout.heads.key_width(), layout.heads.value_width());
        for span in &batch.spans {
            let end = span.end();
            let written = if new.is_some() { span.written(layout.page_rows) } else { end..end };
            kv.bring_to_host(&KvAccess { pages: &span.pages, written })?;
            let Some((k, v)) = new else { continue };
            if let Some((from, to)) = span.fork.as_ref().and_then(|fork| fork.copy) {
                kv.copy_page(from, to);
            }
            let k = &k[span.rows.start * key_width..span.rows.end * key_width];
            let v = &v[span.rows.start * value_width..span.rows.end * value_width];
            let rows = KvRows { pages: &span.pages, start_pos: span.start, k, v };
            rows.write_rotated(&model.cpu, &mut kv, turn(span.rows.start));
        }
        let all = batch.spans.iter().map(|span| AttentionSequence {
            rows: span.rows.clone(),
            start_pos: span.start,
            pages: &span.pages,
        });
        let heads = q.len() / batch.rows() / layout.heads.key_dim;
        let slopes = op.slopes(heads);
        sequences.with(all, |sequences| {
            let job = AttentionJob {
                kv: &kv,
                q,
                sequences,
                heads,
                scale: op.scale,
                mask: &mask,
                soft_cap: op.soft_cap,
                slopes: slopes.as_deref(),
                sinks: op.sinks.map(|sinks| model.weights.vector(sinks)),
            };
            attention(&model.cpu, &job, out);
        });
        Ok(())
    }
}
