//! Scores of a run become weights.

use super::step::{Run, Step};
use super::{Scratch, Task};
use crate::attention::plan::AttentionShape;
use crate::loops::softmax::{KeyMask, SoftmaxStep};
use std::f32::consts::LOG2_E;

/// The scores of one query.
struct QueryScores<'a> {
    query: usize,
    /// Column of the step at which they begin.
    first: usize,
    scores: &'a mut [f32],
}

impl Task<'_> {
    /// Turns the scores of a run into weights and rescales what its queries have accumulated.
    pub(super) fn online_softmax_step(&self, step: &Step<'_>, run: &Run, s: &mut Scratch) {
        let AttentionShape { value_width, group, .. } = self.shape;
        let width = self.shape.step_width();
        let queries = run.rows.start * group..run.rows.end * group;
        let columns = run.chunks.start * 16..run.chunks.end * 16;
        let Scratch { scores, acc, running, bits, seen, .. } = s;
        let Scratch { key_scale, value_scale, factors, pairs, .. } = s;
        let mut softmax_step =
            SoftmaxStep { columns: columns.len(), stride: width, ..SoftmaxStep::default() };
        if !run.full {
            let bits = &bits[run.rows.start * seen.len() + run.chunks.start..];
            softmax_step.mask = Some(KeyMask { bits, stride: seen.len(), group });
        }
        if self.is_scaled() {
            softmax_step.key_scale = Some(&key_scale[columns.clone()]);
            softmax_step.value_scale = Some(&value_scale[columns.clone()]);
        }
        if self.job.soft_cap.is_some() || self.job.slopes.is_some() {
            let scale = softmax_step.key_scale.take();
            for query in queries.clone() {
                let scores = &mut scores[query * width..][columns.clone()];
                if let Some(scale) = scale {
                    scores.iter_mut().zip(scale).for_each(|(x, scale)| *x *= scale);
                }
                self.change(step, QueryScores { query, first: columns.start, scores });
            }
        }
        factors.resize(queries.len(), 1.0);
        let first = queries.start * width + columns.start;
        (self.kernels.online_softmax_step)(
            &mut scores[first..],
            &softmax_step,
            &mut running[queries.clone()],
            factors,
        );
        for (query, factor) in queries.clone().zip(factors) {
            if *factor != 1.0 {
                (self.kernels.scale)(&mut acc[query * value_width..][..value_width], *factor);
            }
            if let Some(attn_bf16) = self.attn_bf16 {
                let weights = &mut pairs.weights[(query * width + columns.start) / 2..];
                let scores = &scores[query * width..][columns.clone()];
                (attn_bf16.round)(scores, &mut weights[..columns.len() / 2]);
            }
        }
    }

    /// Caps the scores, and subtracts the distance of each key times the slope of the head.
    fn change(&self, step: &Step<'_>, QueryScores { query, first, scores }: QueryScores<'_>) {
        if let Some(cap) = self.job.soft_cap {
            (self.kernels.soft_cap)(scores, cap);
            (self.kernels.scale)(scores, LOG2_E);
        }
        let Some(slopes) = self.job.slopes else { return };
        let AttentionShape { group, page_rows, page_width, .. } = self.shape;
        let slope = slopes[self.kv_head * group + query % group] * LOG2_E;
        let position = (self.block.start_pos + query / group) as f32;
        for (column, score) in (first..).zip(scores) {
            let key = (step.pages.start + column / page_width) * page_rows + column % page_width;
            *score -= slope * (position - key as f32).abs();
        }
    }
}
