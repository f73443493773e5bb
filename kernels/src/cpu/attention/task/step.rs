//! Some neighbouring pages' part of a task.

use super::{Scratch, Task};
use crate::cpu::attention::mask::{self, AttentionMask};
use crate::cpu::attention::plan::Shape;
use crate::cpu::loops::kv::{KvConvert, prefetch_panel};
use crate::cpu::loops::softmax::{KeyMask, SoftmaxStep};
use crate::kv::KvDtype;
use crate::kv::store::panel::{Panel, scale_of};
use std::f32::consts::LOG2_E;
use std::ops::Range;

/// Rows that see something of the same chunks of a step.
pub(super) struct Run {
    rows: Range<usize>,
    pub(super) chunks: Range<usize>,
    /// Whether its rows see all keys of the chunks.
    full: bool,
}

/// Pages of a step.
pub(super) struct Step<'a> {
    pub(super) pages: Range<usize>,
    full: bool,
    pub(super) direct: bool,
    /// Whether each panel is asked for while the one before it is read.
    asks: bool,
    /// The first that is read after this step.
    next: Option<Panel<'a>>,
}

impl Task<'_> {
    /// Accumulates these pages; most likely, `next` is read after them. Of pages that are read as
    /// stored by few rows, reading takes longer than computing, and no processor foresees the jump
    /// from one panel to the next: with each line of a panel, its like of the next_tiles one is asked
    /// for, and never much at once, since that keeps what is computed now waiting.
    pub(super) fn step(&self, pages: Range<usize>, next: Option<Panel<'_>>, s: &mut Scratch) {
        let shape = &self.shape;
        let keys = pages.start * shape.page_rows..pages.end * shape.page_rows;
        let aligned = shape.is_aligned();
        let plain = self.job.kv.layout().dtype == KvDtype::F32;
        let few = self.queries() <= self.kernels.direct_queries;
        let ordered = matches!(self.job.mask, AttentionMask::Causal | AttentionMask::Window(_));
        let step = Step {
            full: aligned && self.job.mask.sees_all(&self.positions(), &keys),
            direct: aligned && (plain || few),
            asks: aligned && few && ordered,
            next,
            pages,
        };
        if step.asks {
            let first = self.stored_keys(step.pages.start);
            if s.asked != Some(first.addresses().start.addr()) {
                prefetch_panel(first, self.prefetch_hint);
            }
            s.asked = step.next.map(|next| next.addresses().start.addr());
        }
        self.look(&step, s);
        self.load(&step, s);
        let mut row = 0;
        while let Some(run) = self.run(&step, row, s) {
            row = run.rows.end;
            self.attend(&step, &run, s);
        }
    }

    /// What is asked for while panel `index` of a step is read, first the keys of its pages and then
    /// their values.
    fn after<'a>(&'a self, step: &Step<'a>, index: usize) -> Option<Panel<'a>> {
        let (pages, next) = (step.pages.len(), index + 1);
        match step.asks {
            false => None,
            true if next < pages => Some(self.stored_keys(step.pages.start + next)),
            true if next < 2 * pages => Some(self.stored_values(step.pages.start + next - pages)),
            true => step.next,
        }
    }

    /// Notes which keys the rows see.
    fn look(&self, step: &Step<'_>, s: &mut Scratch) {
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

    #[inline]
    pub(super) fn stored_keys(&self, page: usize) -> Panel<'_> {
        self.job.kv.keys(self.pages[page], self.kv_head)
    }

    #[inline]
    pub(super) fn stored_values(&self, page: usize) -> Panel<'_> {
        self.job.kv.values(self.pages[page], self.kv_head)
    }

    /// Converts the pages of which something is seen, unless they are read as stored.
    fn load(&self, step: &Step<'_>, s: &mut Scratch) {
        if step.direct && !self.is_scaled() {
            return;
        }
        let Shape { page_rows, page_width, .. } = self.shape;
        for (i, page) in step.pages.clone().enumerate() {
            let seen = &s.seen[i * page_width / 16..(i + 1) * page_width / 16];
            if seen.iter().all(|bits| *bits == 0) {
                continue;
            }
            let at = i * page_width;
            match self.attn_bf16 {
                _ if step.direct => {}
                None => {
                    let to = (&mut *s.keys, &mut *s.values);
                    self.widen((page, at), to, 1, self.kernels.kv_to_f32);
                }
                Some(attn_bf16) => {
                    let to = (&mut *s.pairs.keys, &mut *s.pairs.values);
                    self.widen((page, at), to, 2, attn_bf16.pack_kv);
                }
            }
            let scales = self.job.kv.scales(self.pages[page], self.kv_head);
            for (to, from) in [&mut s.key_scale, &mut s.value_scale].into_iter().zip(scales) {
                let (to, padding) = to[at..at + page_width].split_at_mut(page_rows);
                for (to, from) in to.iter_mut().zip(from.as_chunks::<4>().0) {
                    *to = scale_of(from);
                }
                padding.fill(0.0);
            }
        }
    }

    fn is_scaled(&self) -> bool {
        self.job.kv.layout().dtype == KvDtype::I8
    }

    /// Converts a page to column `at` of keys and values, of which an element has a depth of `depth`.
    fn widen<T: Copy + Default>(
        &self,
        (page, at): (usize, usize),
        (keys, values): (&mut [T], &mut [T]),
        depth: usize,
        widen: fn(&KvConvert<'_>, &mut [T]),
    ) {
        let Shape { page_rows, page_width, head_dim, value_width, .. } = self.shape;
        let from = KvConvert {
            from: self.stored_keys(page),
            cols: page_rows,
            stride: self.shape.step_width(),
        };
        widen(&from, &mut keys[at..]);
        let from =
            KvConvert { from: self.stored_values(page), cols: head_dim, stride: value_width };
        let rows = at / depth..(at + page_width) / depth;
        let to = &mut values[rows.start * value_width..rows.end * value_width];
        widen(&from, to);
        to[page_rows.div_ceil(depth) * value_width..].fill(T::default());
    }

    /// The next rows from `row` on that see the same chunks.
    fn run(&self, step: &Step<'_>, mut row: usize, s: &Scratch) -> Option<Run> {
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

    fn attend(&self, step: &Step<'_>, run: &Run, s: &mut Scratch) {
        let group = self.shape.group;
        if !run.full {
            s.gather(run.rows.clone());
        }
        let queries = run.rows.start * group..run.rows.end * group;
        self.each_part(step, run, s, |part, s| {
            let next = self.after(step, part.page);
            self.scores((&part, next), &queries, s);
        });
        // Nothing else is read while scores become weights, and the first values have been asked for.
        if step.asks && step.pages.len() > 1 {
            prefetch_panel(self.stored_values(step.pages.start + 1), self.prefetch_hint);
        }
        self.online_softmax_step(run, &queries, s);
        self.each_part(step, run, s, |part, s| {
            let next = self.after(step, step.pages.len() + part.page);
            self.values((&part, next), &queries, s);
        });
    }

    /// Scores of a run become weights, and what its lines have accumulated is corrected.
    fn online_softmax_step(&self, run: &Run, queries: &Range<usize>, s: &mut Scratch) {
        let Shape { value_width, group, .. } = self.shape;
        let width = self.shape.step_width();
        let columns = run.chunks.start * 16..run.chunks.end * 16;
        let Scratch {
            scores, acc, online, bits, seen, key_scale, value_scale, factors, pairs, ..
        } = s;
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
        if let Some(cap) = self.job.soft_cap {
            let scale = softmax_step.key_scale.take();
            for query in queries.clone() {
                let scores = &mut scores[query * width..][columns.clone()];
                if let Some(scale) = scale {
                    scores.iter_mut().zip(scale).for_each(|(x, scale)| *x *= scale);
                }
                (self.kernels.soft_cap)(scores, cap);
                (self.kernels.scale)(scores, LOG2_E);
            }
        }
        factors.resize(queries.len(), 1.0);
        let first = queries.start * width + columns.start;
        (self.kernels.online_softmax_step)(
            &mut scores[first..],
            &softmax_step,
            &mut online[queries.clone()],
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
