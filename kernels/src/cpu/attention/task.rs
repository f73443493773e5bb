//! One block of rows with the heads of one KV head.

mod attn_matmul;
mod step;

use super::job::AttentionJob;
use super::plan::{Block, Shape};
use crate::aligned::Aligned;
use crate::cpu::isa::kernels::{AttnBf16Kernels, Kernels};
use crate::cpu::loops::attn_bf16::Bf16Pair;
use crate::cpu::loops::softmax::RunningSoftmax;
use crate::cpu::pool::ColumnBlock;
use crate::cpu::simd::prefetch::PrefetchHint;
use crate::kv::PageId;
use crate::kv::store::panel::Panel;
use std::f32::consts::LOG2_E;
use std::mem::swap;
use std::ops::Range;

/// Buffers of a thread. A line is a row's head; lines of one row are neighbours.
#[derive(Default)]
pub(super) struct Scratch {
    /// `[lines][head_dim]`.
    q: Aligned<f32>,
    /// `[head_dim][step_width]`, where products are of single values.
    keys: Aligned<f32>,
    /// `[step_width][value_width]`, likewise.
    values: Aligned<f32>,
    /// `[lines][step_width]`.
    scores: Aligned<f32>,
    /// Of the split, `[lines][value_width]`.
    acc: Aligned<f32>,
    online: Vec<RunningSoftmax>,
    /// On what each line has accumulated, by the last step.
    factors: Vec<f32>,
    /// Of all splits before.
    total: Aligned<f32>,
    total_online: Vec<RunningSoftmax>,
    /// Keys that the rows see of a step, `[rows][chunks]`.
    bits: Vec<u16>,
    /// Keys that any row of a run sees, per chunk.
    seen: Vec<u16>,
    key_scale: Aligned<f32>,
    value_scale: Aligned<f32>,
    pairs: PairScratch,
    /// Where the keys lie that this thread has asked for and not yet read.
    asked: Option<usize>,
}

/// What products of pairs multiply.
#[derive(Default)]
struct PairScratch {
    /// `[lines][head_dim / 2]`.
    q: Aligned<Bf16Pair>,
    /// `[head_dim / 2][step_width]`.
    keys: Aligned<Bf16Pair>,
    /// `[lines][step_width / 2]`.
    weights: Aligned<Bf16Pair>,
    /// `[step_width / 2][value_width]`.
    values: Aligned<Bf16Pair>,
}

pub(super) struct Task<'a> {
    pub(super) kernels: &'static Kernels,
    /// How pairs are multiplied; none where products are of single values.
    pub(super) attn_bf16: Option<&'static AttnBf16Kernels>,
    pub(super) job: &'a AttentionJob<'a>,
    pub(super) shape: Shape,
    pub(super) block: &'a Block,
    /// Of the sequence.
    pub(super) pages: &'a [PageId],
    pub(super) kv_head: usize,
    /// As [`Caches::prefetch_hint`](crate::cpu::Caches::prefetch_hint).
    pub(super) prefetch_hint: PrefetchHint,
}

impl Task<'_> {
    fn queries(&self) -> usize {
        self.block.rows.len() * self.shape.group
    }

    /// All splits, joined in the scratch's total.
    pub(super) fn whole(&self, s: &mut Scratch) {
        self.begin(s);
        let first = self.block.splits.start;
        for split in self.block.splits.clone() {
            self.split(split, self.first_keys(split + 1), s);
            let Scratch { acc, online, total, total_online, .. } = &mut *s;
            if split == first {
                swap(acc, total);
                swap(online, total_online);
            } else {
                self.join((total, total_online), (acc, |query| online[query]));
            }
        }
    }

    /// One split, to be joined later; `next` as [`Task::split`] has it.
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
        for (query, online) in s.online[..queries].iter().enumerate() {
            (state[query], state[queries + query]) = (online.max, online.sum);
        }
    }

    /// Joins the partial results of all splits in the scratch's total.
    pub(super) fn joined(&self, partials: &[f32], s: &mut Scratch) {
        self.begin(s);
        let queries = self.queries();
        for partial in partials.chunks_exact(partials.len() / self.block.splits.len()) {
            let (values, state) = partial.split_at(queries * self.shape.value_width);
            let online = |query| RunningSoftmax { max: state[query], sum: state[queries + query] };
            self.join((&mut s.total, &mut s.total_online), (values, online));
        }
    }

    /// The output of what has been joined.
    pub(super) fn finish(&self, s: &mut Scratch, out: &mut ColumnBlock<'_, f32>) {
        let Shape { head_dim, value_width, group, .. } = self.shape;
        for row in 0..self.block.rows.len() {
            for (head, to) in out.row_mut(row).chunks_exact_mut(head_dim).enumerate() {
                let query = row * group + head;
                let sum = s.total_online[query].sum;
                if sum == 0.0 {
                    to.fill(0.0);
                    continue;
                }
                let total = &s.total[query * value_width..][..head_dim];
                (self.kernels.scale_into)(total, 1.0 / sum, to);
            }
        }
    }

    fn begin(&self, s: &mut Scratch) {
        let shape = &self.shape;
        let (queries, group) = (self.queries(), shape.group);
        s.q.room(queries * shape.head_dim);
        let factor = self.job.scale * self.job.soft_cap.map_or(LOG2_E, |_| 1.0);
        let width = group * shape.head_dim;
        for (row, q) in self.block.rows.clone().zip(s.q.chunks_exact_mut(width)) {
            let at = (row * self.job.heads + self.kv_head * group) * shape.head_dim;
            (self.kernels.scale_into)(&self.job.q[at..][..width], factor, q);
        }
        match self.attn_bf16 {
            None => {
                s.keys.room(shape.head_dim * shape.step_width());
                s.values.room(shape.step_width() * shape.value_width);
            }
            Some(attn_bf16) => self.begin_pairs(attn_bf16, s),
        }
        s.scores.room(queries * shape.step_width());
        s.acc.room(queries * shape.value_width);
        s.total.room(queries * shape.value_width);
        s.key_scale.room(shape.step_width());
        s.value_scale.room(shape.step_width());
        s.total_online.clear();
        s.total_online.resize(queries, RunningSoftmax::START);
    }

    fn begin_pairs(&self, attn_bf16: &AttnBf16Kernels, s: &mut Scratch) {
        let (shape, queries) = (&self.shape, self.queries());
        let Scratch { q, pairs, .. } = s;
        let depth = shape.head_dim.div_ceil(2);
        pairs.q.room(queries * depth);
        let q = q.chunks_exact(shape.head_dim).take(queries);
        for (q, to) in q.zip(pairs.q.chunks_exact_mut(depth)) {
            (attn_bf16.round)(q, to);
        }
        pairs.keys.room(depth * shape.step_width());
        pairs.weights.room(queries * shape.step_width() / 2);
        pairs.values.room(shape.step_width() / 2 * shape.value_width);
    }

    fn join(
        &self,
        (total, total_online): (&mut [f32], &mut [RunningSoftmax]),
        (part, part_online): (&[f32], impl Fn(usize) -> RunningSoftmax),
    ) {
        let width = self.shape.value_width;
        let queries = total.chunks_exact_mut(width).zip(part.chunks_exact(width));
        for (query, ((total, part), online)) in queries.zip(total_online).enumerate() {
            let new = part_online(query);
            if new.max == f32::NEG_INFINITY {
                continue;
            }
            if online.max == f32::NEG_INFINITY {
                total.copy_from_slice(part);
                *online = new;
                continue;
            }
            let max = if new.max > online.max { new.max } else { online.max };
            let factors = ((online.max - max).exp2(), (new.max - max).exp2());
            (self.kernels.axpby)(total, part, factors);
            *online = RunningSoftmax { max, sum: online.sum * factors.0 + new.sum * factors.1 };
        }
    }

    /// Accumulates a split. AfterBlock it, this thread will most likely read `next`.
    fn split(&self, split: usize, next: Option<Panel<'_>>, s: &mut Scratch) {
        s.acc[..self.queries() * self.shape.value_width].fill(0.0);
        s.online.clear();
        s.online.resize(self.queries(), RunningSoftmax::START);
        let mut steps = self.steps(split).peekable();
        while let Some(pages) = steps.next() {
            let next = steps.peek().map(|pages| self.stored_keys(pages.start)).or(next);
            self.step(pages, next, s);
        }
    }

    /// What is read first of a split; none where it is hidden from all rows.
    pub(super) fn first_keys(&self, split: usize) -> Option<Panel<'_>> {
        self.steps(split).next().map(|pages| self.stored_keys(pages.start))
    }

    /// The pages of each step of a split that the mask does not hide from all rows.
    fn steps(&self, split: usize) -> impl Iterator<Item = Range<usize>> + use<> {
        let Shape { page_rows, step_pages, .. } = self.shape;
        let positions = self.positions();
        let first = self.job.mask.first_key(positions.start) / page_rows;
        let end = (positions.end - 1) / page_rows + 1;
        let pages = split * self.shape.split_pages()..(split + 1) * self.shape.split_pages();
        let steps =
            pages.step_by(step_pages).map(move |start| start..(start + step_pages).min(end));
        steps.filter(move |pages| first < pages.end && pages.start < end)
    }

    fn positions(&self) -> Range<usize> {
        self.block.start_pos..self.block.start_pos + self.block.rows.len()
    }
}
