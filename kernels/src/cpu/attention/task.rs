//! One block of rows with the heads of one KV head.

mod products;
mod step;

use super::AttentionJob;
use super::plan::{Block, Shape};
use crate::aligned::Aligned;
use crate::cpu::caches::AskInto;
use crate::cpu::isa::Kernels;
use crate::cpu::isa::paired::{Pair, Paired};
use crate::cpu::pool::ColumnBlock;
use crate::cpu::softmax::Online;
use crate::kv::{PageId, Panel};
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
    online: Vec<Online>,
    /// On what each line has accumulated, by the last step.
    factors: Vec<f32>,
    /// Of all splits before.
    total: Aligned<f32>,
    total_online: Vec<Online>,
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
    q: Aligned<Pair>,
    /// `[head_dim / 2][step_width]`.
    keys: Aligned<Pair>,
    /// `[lines][step_width / 2]`.
    weights: Aligned<Pair>,
    /// `[step_width / 2][value_width]`.
    values: Aligned<Pair>,
}

pub(super) struct Task<'a> {
    pub(super) kernels: &'static Kernels,
    /// How pairs are multiplied; none where products are of single values.
    pub(super) paired: Option<&'static Paired>,
    pub(super) job: &'a AttentionJob<'a>,
    pub(super) shape: Shape,
    pub(super) block: &'a Block,
    /// Of the sequence.
    pub(super) pages: &'a [PageId],
    pub(super) kv_head: usize,
    /// As [`Caches::ask_into`](crate::cpu::Caches::ask_into).
    pub(super) ask_into: AskInto,
}

impl Task<'_> {
    fn lines(&self) -> usize {
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
                self.join((total, total_online), (acc, |line| online[line]));
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
        let lines = self.lines();
        let (values, state) = out.split_at_mut(lines * self.shape.value_width);
        values.copy_from_slice(&s.acc[..values.len()]);
        for (line, online) in s.online[..lines].iter().enumerate() {
            (state[line], state[lines + line]) = (online.max, online.sum);
        }
    }

    /// Joins the partial results of all splits in the scratch's total.
    pub(super) fn joined(&self, partials: &[f32], s: &mut Scratch) {
        self.begin(s);
        let lines = self.lines();
        for partial in partials.chunks_exact(partials.len() / self.block.splits.len()) {
            let (values, state) = partial.split_at(lines * self.shape.value_width);
            let online = |line| Online { max: state[line], sum: state[lines + line] };
            self.join((&mut s.total, &mut s.total_online), (values, online));
        }
    }

    /// The output of what has been joined.
    pub(super) fn finish(&self, s: &mut Scratch, out: &mut ColumnBlock<'_, f32>) {
        let Shape { head_dim, value_width, group, .. } = self.shape;
        for row in 0..self.block.rows.len() {
            for (head, to) in out.row_mut(row).chunks_exact_mut(head_dim).enumerate() {
                let line = row * group + head;
                let sum = s.total_online[line].sum;
                if sum == 0.0 {
                    to.fill(0.0);
                    continue;
                }
                let total = &s.total[line * value_width..][..head_dim];
                (self.kernels.scaled)(total, 1.0 / sum, to);
            }
        }
    }

    fn begin(&self, s: &mut Scratch) {
        let shape = &self.shape;
        let (lines, group) = (self.lines(), shape.group);
        s.q.room(lines * shape.head_dim);
        let factor = self.job.scale * self.job.soft_cap.map_or(LOG2_E, |_| 1.0);
        let width = group * shape.head_dim;
        for (row, q) in self.block.rows.clone().zip(s.q.chunks_exact_mut(width)) {
            let at = (row * self.job.heads + self.kv_head * group) * shape.head_dim;
            (self.kernels.scaled)(&self.job.q[at..][..width], factor, q);
        }
        match self.paired {
            None => {
                s.keys.room(shape.head_dim * shape.step_width());
                s.values.room(shape.step_width() * shape.value_width);
            }
            Some(paired) => self.begin_pairs(paired, s),
        }
        s.scores.room(lines * shape.step_width());
        s.acc.room(lines * shape.value_width);
        s.total.room(lines * shape.value_width);
        s.key_scale.room(shape.step_width());
        s.value_scale.room(shape.step_width());
        s.total_online.clear();
        s.total_online.resize(lines, Online::START);
    }

    fn begin_pairs(&self, paired: &Paired, s: &mut Scratch) {
        let (shape, lines) = (&self.shape, self.lines());
        let Scratch { q, pairs, .. } = s;
        let depth = shape.head_dim.div_ceil(2);
        pairs.q.room(lines * depth);
        let q = q.chunks_exact(shape.head_dim).take(lines);
        for (q, to) in q.zip(pairs.q.chunks_exact_mut(depth)) {
            (paired.round)(q, to);
        }
        pairs.keys.room(depth * shape.step_width());
        pairs.weights.room(lines * shape.step_width() / 2);
        pairs.values.room(shape.step_width() / 2 * shape.value_width);
    }

    fn join(
        &self,
        (total, total_online): (&mut [f32], &mut [Online]),
        (part, part_online): (&[f32], impl Fn(usize) -> Online),
    ) {
        let width = self.shape.value_width;
        let lines = total.chunks_exact_mut(width).zip(part.chunks_exact(width));
        for (line, ((total, part), online)) in lines.zip(total_online).enumerate() {
            let new = part_online(line);
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
            (self.kernels.join)(total, part, factors);
            *online = Online { max, sum: online.sum * factors.0 + new.sum * factors.1 };
        }
    }

    /// Accumulates a split. After it, this thread will most likely read `next`.
    fn split(&self, split: usize, next: Option<Panel<'_>>, s: &mut Scratch) {
        s.acc[..self.lines() * self.shape.value_width].fill(0.0);
        s.online.clear();
        s.online.resize(self.lines(), Online::START);
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
