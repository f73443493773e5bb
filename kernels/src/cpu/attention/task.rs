//! One block of rows with the heads of one KV head.

use super::plan::{Block, Shape};
use super::{AttentionJob, mask};
use crate::aligned::Aligned;
use crate::cpu::isa::Kernels;
use crate::cpu::isa::product::{Product, Widen};
use crate::cpu::pool::ColumnBlock;
use crate::cpu::softmax::{Online, Weigh};
use crate::kv::{HeadPage, KvDtype, Panel, scale_of};
use std::f32::consts::LOG2_E;
use std::ops::Range;

/// Most lines whose keys and values are read as they are stored: with more, each would be
/// converted more than once.
const DIRECT_LINES: usize = 6;

/// Buffers of a thread. A line is a row's head; lines of one row are neighbours.
#[derive(Default)]
pub(super) struct Scratch {
    /// `[lines][head_dim]`.
    q: Aligned<f32>,
    /// `[head_dim][step_width]`.
    keys: Aligned<f32>,
    /// `[step_width][value_width]`.
    values: Aligned<f32>,
    /// `[lines][step_width]`.
    scores: Aligned<f32>,
    /// Of the split, `[lines][value_width]`.
    acc: Aligned<f32>,
    online: Vec<Online>,
    /// Of all splits before.
    total: Aligned<f32>,
    total_online: Vec<Online>,
    /// Keys that the rows see of a step, `[rows][chunks]`.
    bits: Vec<u16>,
    /// Keys that any row of a run sees, per chunk.
    seen: Vec<u16>,
    key_scale: Aligned<f32>,
    value_scale: Aligned<f32>,
}

pub(super) struct Task<'a> {
    pub(super) kernels: &'static Kernels,
    pub(super) job: &'a AttentionJob<'a>,
    pub(super) shape: Shape,
    pub(super) block: &'a Block,
    pub(super) kv_head: usize,
}

/// Rows that see something of the same chunks of a step.
struct Run {
    rows: Range<usize>,
    chunks: Range<usize>,
    /// Whether its rows see all keys of the chunks.
    full: bool,
}

/// Pages of a step.
struct Step {
    pages: Range<usize>,
    full: bool,
    direct: bool,
}

impl Task<'_> {
    fn lines(&self) -> usize {
        self.block.rows.len() * self.shape.group
    }

    /// All splits, joined in the scratch's total.
    pub(super) fn whole(&self, s: &mut Scratch) {
        self.begin(s);
        for split in self.block.splits.clone() {
            self.split(split, s);
            let Scratch { acc, online, total, total_online, .. } = &mut *s;
            self.join((total, total_online), (acc, |line| online[line]));
        }
    }

    /// One split, to be joined later.
    pub(super) fn partial(&self, split: usize, s: &mut Scratch, out: &mut [f32]) {
        self.begin(s);
        self.split(split, s);
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
                to.copy_from_slice(&s.total[line * value_width..][..head_dim]);
                (self.kernels.scale)(to, 1.0 / sum);
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
            q.copy_from_slice(&self.job.q[at..][..width]);
            (self.kernels.scale)(q, factor);
        }
        s.keys.room(shape.head_dim * shape.step_width());
        s.values.room(shape.step_width() * shape.value_width);
        s.scores.room(lines * shape.step_width());
        s.acc.room(lines * shape.value_width);
        s.total.room(lines * shape.value_width);
        s.key_scale.room(shape.step_width());
        s.value_scale.room(shape.step_width());
        s.total_online.clear();
        s.total_online.resize(lines, Online::START);
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

    fn split(&self, split: usize, s: &mut Scratch) {
        let Shape { page_rows, step_pages, .. } = self.shape;
        s.acc[..self.lines() * self.shape.value_width].fill(0.0);
        s.online.clear();
        s.online.resize(self.lines(), Online::START);
        let positions = self.positions();
        let first = self.job.mask.first_key(positions.start) / page_rows;
        let last = (positions.end - 1) / page_rows;
        let pages = split * self.shape.split_pages()..(split + 1) * self.shape.split_pages();
        for start in pages.step_by(step_pages) {
            let end = (start + step_pages).min(last + 1);
            if first < end && start < end {
                self.step(start..end, s);
            }
        }
    }

    fn positions(&self) -> Range<usize> {
        self.block.start_pos..self.block.start_pos + self.block.rows.len()
    }

    fn step(&self, pages: Range<usize>, s: &mut Scratch) {
        let shape = &self.shape;
        let keys = pages.start * shape.page_rows..pages.end * shape.page_rows;
        let aligned = shape.is_aligned();
        let plain = self.job.kv.layout().dtype == KvDtype::F32;
        let few = self.kernels.reads_narrow && self.lines() <= DIRECT_LINES;
        let step = Step {
            full: aligned && self.job.mask.sees_all(&self.positions(), &keys),
            direct: aligned && (plain || few),
            pages,
        };
        self.look(&step, s);
        self.load(&step, s);
        let mut row = 0;
        while let Some(run) = self.run(&step, row, s) {
            row = run.rows.end;
            self.attend(&step, &run, s);
        }
    }

    /// Notes which keys the rows see.
    fn look(&self, step: &Step, s: &mut Scratch) {
        let Shape { page_rows, page_width, .. } = self.shape;
        s.bits.clear();
        s.seen.clear();
        let chunks = step.pages.len() * page_width / 16;
        if step.full {
            s.seen.resize(chunks, u16::MAX);
            return;
        }
        s.seen.resize(chunks, 0);
        for pos in self.positions() {
            for page in step.pages.clone() {
                for at in (0..page_width).step_by(16) {
                    let inside = mask::span(at, 0..page_rows);
                    s.bits.push(inside & self.job.mask.bits(pos, page * page_rows + at));
                }
            }
        }
        s.gather(0..self.block.rows.len());
    }

    fn page(&self, page: usize) -> HeadPage<'_> {
        let pages = self.job.spans[self.block.span].pages;
        self.job.kv.head(pages[page], self.kv_head)
    }

    /// Converts the pages of which something is seen, unless they are read as stored.
    fn load(&self, step: &Step, s: &mut Scratch) {
        let Shape { page_rows, page_width, head_dim, value_width, .. } = self.shape;
        let stride = self.shape.step_width();
        for (i, page) in step.pages.clone().enumerate() {
            let seen = &s.seen[i * page_width / 16..(i + 1) * page_width / 16];
            if seen.iter().all(|bits| *bits == 0) {
                continue;
            }
            let HeadPage { keys, values, scales } = self.page(page);
            let at = i * page_width;
            if !step.direct {
                let widen = Widen { from: keys, cols: page_rows, stride };
                (self.kernels.widen)(&widen, &mut s.keys[at..]);
                let widen = Widen { from: values, cols: head_dim, stride: value_width };
                let to = &mut s.values[at * value_width..(at + page_width) * value_width];
                (self.kernels.widen)(&widen, to);
                to[page_rows * value_width..].fill(0.0);
            }
            for (to, from) in [&mut s.key_scale, &mut s.value_scale].into_iter().zip(scales) {
                let to = &mut to[at..at + page_width];
                for (to, from) in to.iter_mut().zip(from.as_chunks::<4>().0) {
                    *to = scale_of(from);
                }
            }
        }
    }

    /// The next rows from `row` on that see the same chunks.
    fn run(&self, step: &Step, mut row: usize, s: &Scratch) -> Option<Run> {
        let (rows, chunks) = (self.block.rows.len(), s.seen.len());
        if step.full {
            return (row == 0).then_some(Run { rows: 0..rows, chunks: 0..chunks, full: true });
        }
        let chunks_of = |row: usize| {
            let bits = &s.bits[row * chunks..][..chunks];
            let first = bits.iter().position(|b| *b != 0)?;
            Some(first..bits.iter().rposition(|b| *b != 0)? + 1)
        };
        while row < rows {
            if let Some(chunks) = chunks_of(row) {
                let same = |row: &usize| chunks_of(*row).as_ref() == Some(&chunks);
                let end = (row + 1..rows).find(|row| !same(row)).unwrap_or(rows);
                return Some(Run { rows: row..end, chunks, full: false });
            }
            row += 1;
        }
        None
    }

    fn attend(&self, step: &Step, run: &Run, s: &mut Scratch) {
        let Shape { value_width, group, .. } = self.shape;
        let width = self.shape.step_width();
        if !run.full {
            s.gather(run.rows.clone());
        }
        let lines = run.rows.start * group..run.rows.end * group;
        self.each_part(step, run, s, |part, s| self.scores(&part, &lines, s));
        let scaled = self.job.kv.layout().dtype == KvDtype::I8;
        let columns = run.chunks.start * 16..run.chunks.end * 16;
        let Scratch { scores, acc, online, bits, seen, key_scale, value_scale, .. } = s;
        for line in lines.clone() {
            let scores = &mut scores[line * width..][columns.clone()];
            let mut weigh = Weigh::default();
            if !run.full {
                let bits = &bits[line / group * seen.len()..][..seen.len()];
                weigh.bits = Some(&bits[run.chunks.clone()]);
            }
            if scaled {
                weigh.key_scale = Some(&key_scale[columns.clone()]);
                weigh.value_scale = Some(&value_scale[columns.clone()]);
            }
            if let Some(cap) = self.job.soft_cap {
                if let Some(scale) = weigh.key_scale.take() {
                    scores.iter_mut().zip(scale).for_each(|(x, scale)| *x *= scale);
                }
                (self.kernels.soft_cap)(scores, cap);
                (self.kernels.scale)(scores, LOG2_E);
            }
            let correction = (self.kernels.weigh)(scores, &weigh, &mut online[line]);
            if correction != 1.0 {
                (self.kernels.scale)(&mut acc[line * value_width..][..value_width], correction);
            }
        }
        self.each_part(step, run, s, |part, s| self.values(&part, &lines, s));
    }

    /// Calls `f` for each range of columns of which something is seen; where pages are read as
    /// stored, for each page's part of it. The end of a range is the last key that is seen.
    fn each_part(
        &self,
        step: &Step,
        run: &Run,
        s: &mut Scratch,
        f: impl Fn(Part<'_>, &mut Scratch),
    ) {
        let page_chunks = self.shape.page_width / 16;
        let mut at = run.chunks.start;
        while at < run.chunks.end {
            if s.seen[at] == 0 {
                at += 1;
                continue;
            }
            let page = at / page_chunks;
            let limit = if step.direct {
                run.chunks.end.min((page + 1) * page_chunks)
            } else {
                run.chunks.end
            };
            let end = (at..limit).find(|i| s.seen[*i] == 0).unwrap_or(limit);
            let last = 16 - s.seen[end - 1].leading_zeros() as usize;
            let stored = step.direct.then(|| self.page(step.pages.start + page));
            let columns = at * 16..(end - 1) * 16 + last;
            f(Part { columns, page_start: page * self.shape.page_width, stored }, s);
            at = end;
        }
    }

    fn scores(&self, part: &Part<'_>, lines: &Range<usize>, s: &mut Scratch) {
        let head_dim = self.shape.head_dim;
        let width = self.shape.step_width();
        let start = part.columns.start;
        let (b, b_stride) = match &part.stored {
            Some(page) => (page.keys.skip(start - part.page_start), self.shape.page_rows),
            None => (Panel::F32(&s.keys[start..]), width),
        };
        let product = Product {
            a: &s.q[lines.start * head_dim..],
            a_stride: head_dim,
            b,
            b_stride,
            c_stride: width,
            rows: lines.len(),
            depth: head_dim,
            chunks: part.columns.len().div_ceil(16),
            add: false,
        };
        (self.kernels.product)(&product, &mut s.scores[lines.start * width + start..]);
    }

    fn values(&self, part: &Part<'_>, lines: &Range<usize>, s: &mut Scratch) {
        let value_width = self.shape.value_width;
        let width = self.shape.step_width();
        let start = part.columns.start;
        let b = match &part.stored {
            Some(page) => page.values.skip((start - part.page_start) * value_width),
            None => Panel::F32(&s.values[start * value_width..]),
        };
        let product = Product {
            a: &s.scores[lines.start * width + start..],
            a_stride: width,
            b,
            b_stride: value_width,
            c_stride: value_width,
            rows: lines.len(),
            depth: part.columns.len(),
            chunks: value_width / 16,
            add: true,
        };
        (self.kernels.product)(&product, &mut s.acc[lines.start * value_width..]);
    }
}

/// Columns of a step.
struct Part<'a> {
    columns: Range<usize>,
    /// First column of the page.
    page_start: usize,
    stored: Option<HeadPage<'a>>,
}

impl Scratch {
    /// Notes per chunk which keys any of `rows` sees.
    fn gather(&mut self, rows: Range<usize>) {
        let chunks = self.seen.len();
        self.seen.fill(0);
        for bits in self.bits[rows.start * chunks..rows.end * chunks].chunks_exact(chunks) {
            self.seen.iter_mut().zip(bits).for_each(|(seen, bits)| *seen |= bits);
        }
    }
}
