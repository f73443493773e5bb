//! Some neighbouring pages' part of a task.

use super::{DIRECT_LINES, Scratch, Task};
use crate::cpu::attention::plan::Shape;
use crate::cpu::attention::{AttentionMask, mask};
use crate::cpu::isa::product::{Product, Widen};
use crate::cpu::softmax::Weigh;
use crate::kv::{HeadPage, KvDtype, Panel, scale_of};
use std::f32::consts::LOG2_E;
use std::ops::Range;

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
    /// Whether pages are asked for before they are read.
    asks: bool,
    /// Pages whose keys are asked for, each while the values of one of this step are read.
    next: Range<usize>,
}

/// Columns of a step.
struct Part<'a> {
    columns: Range<usize>,
    /// First column of the page.
    page_start: usize,
    stored: Option<HeadPage<'a>>,
}

impl Task<'_> {
    /// Accumulates these pages. Of pages that are read as stored, one after another, by few rows,
    /// reading takes longer than computing, and no processor foresees the jump from one page to the
    /// next: values are asked for while scores are computed, and meanwhile the keys of the pages
    /// `next`. Keys before page `near` have been asked for; gives the first page whose keys have not.
    pub(super) fn step(
        &self,
        pages: Range<usize>,
        (near, next): (usize, Range<usize>),
        s: &mut Scratch,
    ) -> usize {
        let shape = &self.shape;
        let keys = pages.start * shape.page_rows..pages.end * shape.page_rows;
        let aligned = shape.is_aligned();
        let plain = self.job.kv.layout().dtype == KvDtype::F32;
        let few = self.kernels.reads_narrow && self.lines() <= DIRECT_LINES;
        let ordered = matches!(self.job.mask, AttentionMask::Causal | AttentionMask::Window(_));
        let asks = aligned && few && ordered;
        let step = Step {
            full: aligned && self.job.mask.sees_all(&self.positions(), &keys),
            direct: aligned && (plain || few),
            asks,
            next,
            pages,
        };
        if asks {
            for page in step.pages.start.max(near)..step.pages.end {
                (self.kernels.prefetch)(self.page(page).keys);
            }
        }
        self.look(&step, s);
        self.load(&step, s);
        let mut row = 0;
        while let Some(run) = self.run(&step, row, s) {
            row = run.rows.end;
            self.attend(&step, &run, s);
        }
        if asks { step.next.end.max(near) } else { near }
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
                let (to, padding) = to[at..at + page_width].split_at_mut(page_rows);
                for (to, from) in to.iter_mut().zip(from.as_chunks::<4>().0) {
                    *to = scale_of(from);
                }
                padding.fill(0.0);
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
        self.each_part(step, run, s, |part, s| {
            let next = part.stored.as_ref().filter(|_| step.asks).map(|page| page.values);
            self.scores((&part, next), &lines, s);
        });
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
        self.each_part(step, run, s, |part, s| {
            let next = step.next.start + part.page_start / self.shape.page_width;
            let next = (step.asks && step.next.contains(&next)).then(|| self.page(next).keys);
            self.values((&part, next), &lines, s);
        });
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

    fn scores(
        &self,
        (part, next): (&Part<'_>, Option<Panel<'_>>),
        lines: &Range<usize>,
        s: &mut Scratch,
    ) {
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
            next,
        };
        (self.kernels.product)(&product, &mut s.scores[lines.start * width + start..]);
    }

    fn values(
        &self,
        (part, next): (&Part<'_>, Option<Panel<'_>>),
        lines: &Range<usize>,
        s: &mut Scratch,
    ) {
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
            next,
        };
        (self.kernels.product)(&product, &mut s.acc[lines.start * value_width..]);
    }
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
