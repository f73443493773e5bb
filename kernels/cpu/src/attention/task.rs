//! A task: one block of rows with the heads of one KV head.

mod attn_matmul;
mod step;
mod weights;

use super::job::AttentionJob;
use super::plan::{AttentionShape, Block};
use crate::isa::kernels::{AttnBf16Kernels, Kernels};
use crate::loops::attn_bf16::Bf16Pair;
use crate::loops::softmax::RunningSoftmax;
use crate::pool::ColumnBlock;
use crate::simd::prefetch::PrefetchHint;
use lapwing_model::aligned::Aligned;
use lapwing_model::kv::PageId;
use lapwing_model::kv::Panel;
use std::f32::consts::LOG2_E;
use std::mem::swap;
use std::ops::Range;

/// Buffers of a thread. A query is one head of a row; the queries of a row are consecutive.
#[derive(Default)]
pub(super) struct Scratch {
    /// `[queries][key_dim]`.
    q: Aligned<f32>,
    /// `[key_dim][step_width]`, for f32 matmuls.
    keys: Aligned<f32>,
    /// `[step_width][value_width]`, for f32 matmuls.
    values: Aligned<f32>,
    /// `[queries][step_width]`.
    scores: Aligned<f32>,
    /// Accumulated values of the split, `[queries][value_width]`.
    acc: Aligned<f32>,
    running: Vec<RunningSoftmax>,
    /// Rescale factor of each query's accumulation in the last step.
    factors: Vec<f32>,
    /// Accumulated values of all splits before, `[queries][value_width]`.
    total: Aligned<f32>,
    total_running: Vec<RunningSoftmax>,
    /// Keys that each row sees in a step, `[rows][chunks]`.
    bits: Vec<u16>,
    /// Keys that any row of a run sees, per chunk.
    seen: Vec<u16>,
    key_scale: Aligned<f32>,
    value_scale: Aligned<f32>,
    pairs: PairScratch,
    /// Address of the keys that this thread has prefetched and not read yet.
    prefetched: Option<usize>,
}

/// Operands of bfloat16 matmuls.
#[derive(Default)]
struct PairScratch {
    /// `[queries][key_dim / 2]`.
    q: Aligned<Bf16Pair>,
    /// `[key_dim / 2][step_width]`.
    keys: Aligned<Bf16Pair>,
    /// `[queries][step_width / 2]`.
    weights: Aligned<Bf16Pair>,
    /// `[step_width / 2][value_width]`.
    values: Aligned<Bf16Pair>,
}

pub(super) struct Task<'a> {
    pub(super) kernels: &'static Kernels,
    /// Kernels for pairs of bfloat16; `None` if matmuls are in f32.
    pub(super) attn_bf16: Option<&'static AttnBf16Kernels>,
    pub(super) job: &'a AttentionJob<'a>,
    pub(super) shape: AttentionShape,
    pub(super) block: &'a Block,
    /// Pages of the sequence.
    pub(super) pages: &'a [PageId],
    pub(super) kv_head: usize,
    /// As [`Caches::prefetch_hint`](crate::Caches::prefetch_hint).
    pub(super) prefetch_hint: PrefetchHint,
}

impl Task<'_> {
    fn queries(&self) -> usize {
        self.block.rows.len() * self.shape.group
    }

    /// Accumulates all splits, in the scratch's total.
    pub(super) fn all_splits(&self, s: &mut Scratch) {
        self.begin(s);
        let first = self.block.splits.start;
        for split in self.block.splits.clone() {
            self.split(split, self.first_keys(split + 1), s);
            let Scratch { acc, running, total, total_running, .. } = &mut *s;
            if split == first {
                swap(acc, total);
                swap(running, total_running);
            } else {
                self.combine(total, total_running, acc, |query| running[query]);
            }
        }
    }

    /// Accumulates one split, to be combined later. `next` as in [`Task::split`].
    pub(super) fn partial(
        &self,
        split: usize,
        next: Option<Panel<'_>>,
        s: &mut Scratch,
        out: &mut [f32],
    ) {
        self.begin(s);
        self.split(split, next, s);
        let queries = self.queries();
        let (values, state) = out.split_at_mut(queries * self.shape.value_width);
        values.copy_from_slice(&s.acc[..values.len()]);
        for (query, running) in s.running[..queries].iter().enumerate() {
            (state[query], state[queries + query]) = (running.max, running.sum);
        }
    }

    /// Combines the partial results of all splits in the scratch's total.
    pub(super) fn combine_partials(&self, partials: &[f32], s: &mut Scratch) {
        self.begin(s);
        let queries = self.queries();
        for partial in partials.chunks_exact(partials.len() / self.block.splits.len()) {
            let (values, state) = partial.split_at(queries * self.shape.value_width);
            let running = |query| RunningSoftmax { max: state[query], sum: state[queries + query] };
            self.combine(&mut s.total, &mut s.total_running, values, running);
        }
    }

    /// Writes the output: the total, normalised.
    pub(super) fn finish(&self, s: &mut Scratch, out: &mut ColumnBlock<'_, f32>) {
        let AttentionShape { value_dim, value_width, group, .. } = self.shape;
        for row in 0..self.block.rows.len() {
            for (head, to) in out.row_mut(row).chunks_exact_mut(value_dim).enumerate() {
                let query = row * group + head;
                let running = s.total_running[query];
                if running.sum == 0.0 {
                    to.fill(0.0);
                    continue;
                }
                let sink = self.job.sinks.map_or(0.0, |sinks| {
                    (sinks[self.kv_head * group + head] * LOG2_E - running.max).exp2()
                });
                let total = &s.total[query * value_width..][..value_dim];
                (self.kernels.scale_into)(total, 1.0 / (running.sum + sink), to);
            }
        }
    }

    fn begin(&self, s: &mut Scratch) {
        let shape = &self.shape;
        let (queries, group) = (self.queries(), shape.group);
        s.q.room(queries * shape.key_dim);
        let factor = self.job.scale * self.job.soft_cap.map_or(LOG2_E, |_| 1.0);
        let width = group * shape.key_dim;
        for (row, q) in self.block.rows.clone().zip(s.q.chunks_exact_mut(width)) {
            let at = (row * self.job.heads + self.kv_head * group) * shape.key_dim;
            (self.kernels.scale_into)(&self.job.q[at..][..width], factor, q);
        }
        match self.attn_bf16 {
            None => {
                s.keys.room(shape.key_dim * shape.step_width());
                s.values.room(shape.step_width() * shape.value_width);
            }
            Some(attn_bf16) => self.begin_pairs(attn_bf16, s),
        }
        s.scores.room(queries * shape.step_width());
        s.acc.room(queries * shape.value_width);
        s.total.room(queries * shape.value_width);
        s.key_scale.room(shape.step_width());
        s.value_scale.room(shape.step_width());
        s.total_running.clear();
        s.total_running.resize(queries, RunningSoftmax::START);
    }

    fn begin_pairs(&self, attn_bf16: &AttnBf16Kernels, s: &mut Scratch) {
        let (shape, queries) = (&self.shape, self.queries());
        let Scratch { q, pairs, .. } = s;
        let depth = shape.key_dim.div_ceil(2);
        pairs.q.room(queries * depth);
        let q = q.chunks_exact(shape.key_dim).take(queries);
        for (q, to) in q.zip(pairs.q.chunks_exact_mut(depth)) {
            (attn_bf16.round)(q, to);
        }
        pairs.keys.room(depth * shape.step_width());
        pairs.weights.room(queries * shape.step_width() / 2);
        pairs.values.room(shape.step_width() / 2 * shape.value_width);
    }

    fn combine(
        &self,
        total: &mut [f32],
        total_running: &mut [RunningSoftmax],
        part: &[f32],
        part_running: impl Fn(usize) -> RunningSoftmax,
    ) {
        let width = self.shape.value_width;
        let queries = total.chunks_exact_mut(width).zip(part.chunks_exact(width));
        for (query, ((total, part), running)) in queries.zip(total_running).enumerate() {
            let new = part_running(query);
            if new.max == f32::NEG_INFINITY {
                continue;
            }
            if running.max == f32::NEG_INFINITY {
                total.copy_from_slice(part);
                *running = new;
                continue;
            }
            let max = if new.max > running.max { new.max } else { running.max };
            let (old_factor, new_factor) = ((running.max - max).exp2(), (new.max - max).exp2());
            (self.kernels.axpby)(total, part, old_factor, new_factor);
            let sum = running.sum * old_factor + new.sum * new_factor;
            *running = RunningSoftmax { max, sum };
        }
    }

    /// Accumulates a split. The thread will most likely read `next` after it.
    fn split(&self, split: usize, next: Option<Panel<'_>>, s: &mut Scratch) {
        s.acc[..self.queries() * self.shape.value_width].fill(0.0);
        s.running.clear();
        s.running.resize(self.queries(), RunningSoftmax::START);
        let mut steps = self.steps(split).peekable();
        while let Some(pages) = steps.next() {
            let next = steps.peek().map(|pages| self.stored_keys(pages.start)).or(next);
            self.step(pages, next, s);
        }
    }

    /// The first keys that a split reads; `None` if it is masked for all rows.
    pub(super) fn first_keys(&self, split: usize) -> Option<Panel<'_>> {
        self.steps(split).next().map(|pages| self.stored_keys(pages.start))
    }

    /// The pages of each step of a split, without steps that are masked for all rows.
    fn steps(&self, split: usize) -> impl Iterator<Item = Range<usize>> + use<> {
        let AttentionShape { page_rows, step_pages, .. } = self.shape;
        let first = self.job.mask.first_key(self.block.start_pos) / page_rows;
        let end = (self.block.keys_end - 1) / page_rows + 1;
        let pages = split * self.shape.split_pages()..(split + 1) * self.shape.split_pages();
        let steps =
            pages.step_by(step_pages).map(move |start| start..(start + step_pages).min(end));
        steps.filter(move |pages| first < pages.end && pages.start < end)
    }

    fn positions(&self) -> Range<usize> {
        self.block.start_pos..self.block.start_pos + self.block.rows.len()
    }
}
