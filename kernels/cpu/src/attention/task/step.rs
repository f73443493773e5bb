//! One step of a task: some consecutive pages.

use super::{Scratch, Task};
use crate::attention::plan::AttentionShape;
use crate::loops::kv::{KvConvert, prefetch_panel};
use lapwing_model::kv::KvDtype;
use lapwing_model::kv::{Panel, scale_of};
use lapwing_model::mask;
use lapwing_model::mask::Mask;
use std::ops::Range;

/// Consecutive rows that see keys in the same chunks of a step.
pub(super) struct Run {
    pub(super) rows: Range<usize>,
    pub(super) chunks: Range<usize>,
    /// Whether its rows see all keys of the chunks.
    pub(super) full: bool,
}

/// The pages of a step.
pub(super) struct Step<'a> {
    pub(super) pages: Range<usize>,
    full: bool,
    pub(super) direct: bool,
    /// Whether each panel is prefetched while the one before it is read.
    prefetches: bool,
    /// The first panel that is read after this step.
    next: Option<Panel<'a>>,
}

/// Converted keys and values of a step.
struct PageBuffers<'a, T> {
    keys: &'a mut [T],
    values: &'a mut [T],
    /// Depth of an element.
    depth: usize,
}

impl Task<'_> {
    /// Accumulates these pages; the thread will most likely read `next` after them. Few rows that
    /// read pages as stored are bound by memory, and hardware prefetchers do not predict the jump
    /// from one panel to the next. So while each line of a panel is read, the same line of the next
    /// panel is prefetched; never much at once, since that would delay the loads of the current
    /// computation.
    pub(super) fn step(&self, pages: Range<usize>, next: Option<Panel<'_>>, s: &mut Scratch) {
        let shape = &self.shape;
        let keys = pages.start * shape.page_rows..pages.end * shape.page_rows;
        let aligned = shape.is_aligned();
        let plain = self.job.kv.layout().dtype == KvDtype::F32;
        let few = self.queries() <= self.kernels.direct_queries;
        let ordered = !matches!(self.job.mask, Mask::Dilated { .. } | Mask::Blocks { .. });
        let keys_end = self.block.keys_end;
        let step = Step {
            full: aligned && self.job.mask.sees_all(&self.positions(), &keys, keys_end),
            direct: aligned && (plain || few),
            // A panel is prefetched line by line with another of the same size.
            prefetches: aligned && few && ordered && shape.key_dim == shape.value_dim,
            next,
            pages,
        };
        if step.prefetches {
            let first = self.stored_keys(step.pages.start);
            if s.prefetched != Some(first.addresses().start.addr()) {
                prefetch_panel(first, self.prefetch_hint);
            }
            s.prefetched = step.next.map(|next| next.addresses().start.addr());
        }
        self.find_seen_keys(&step, s);
        self.load(&step, s);
        let mut row = 0;
        while let Some(run) = self.next_run(&step, row, s) {
            row = run.rows.end;
            self.attend(&step, &run, s);
        }
    }

    /// The panel to prefetch while panel `index` of a step is read; a step reads the keys of its
    /// pages, then their values.
    fn next_panel<'a>(&'a self, step: &Step<'a>, index: usize) -> Option<Panel<'a>> {
        let (pages, next) = (step.pages.len(), index + 1);
        match step.prefetches {
            false => None,
            true if next < pages => Some(self.stored_keys(step.pages.start + next)),
            true if next < 2 * pages => Some(self.stored_values(step.pages.start + next - pages)),
            true => step.next,
        }
    }

    /// Notes which keys the rows see.
    fn find_seen_keys(&self, step: &Step<'_>, s: &mut Scratch) {
        let AttentionShape { page_rows, page_width, .. } = self.shape;
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
                    let inside = mask::key_bits(at, 0..page_rows);
                    let keys_end = self.block.keys_end;
                    s.bits.push(inside & self.job.mask.bits(pos, page * page_rows + at, keys_end));
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

    /// Converts the pages with unmasked keys, unless they are read as stored.
    fn load(&self, step: &Step<'_>, s: &mut Scratch) {
        if step.direct && !self.is_scaled() {
            return;
        }
        let AttentionShape { page_rows, page_width, .. } = self.shape;
        for (i, page) in step.pages.clone().enumerate() {
            let seen = &s.seen[i * page_width / 16..(i + 1) * page_width / 16];
            if seen.iter().all(|bits| *bits == 0) {
                continue;
            }
            let at = i * page_width;
            match self.attn_bf16 {
                _ if step.direct => {}
                None => {
                    let to = PageBuffers { keys: &mut s.keys, values: &mut s.values, depth: 1 };
                    self.convert(page, at, to, self.kernels.kv_to_f32);
                }
                Some(attn_bf16) => {
                    let pairs = &mut s.pairs;
                    let to =
                        PageBuffers { keys: &mut pairs.keys, values: &mut pairs.values, depth: 2 };
                    self.convert(page, at, to, attn_bf16.pack_kv);
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

    pub(super) fn is_scaled(&self) -> bool {
        self.job.kv.layout().dtype == KvDtype::I8
    }

    /// Converts a page to column `at` of the buffers.
    fn convert<T: Copy + Default>(
        &self,
        page: usize,
        at: usize,
        PageBuffers { keys, values, depth }: PageBuffers<'_, T>,
        convert: fn(&KvConvert<'_>, &mut [T]),
    ) {
        let AttentionShape { page_rows, page_width, value_dim, value_width, .. } = self.shape;
        let from = KvConvert {
            from: self.stored_keys(page),
            cols: page_rows,
            stride: self.shape.step_width(),
        };
        convert(&from, &mut keys[at..]);
        let from =
            KvConvert { from: self.stored_values(page), cols: value_dim, stride: value_width };
        let rows = at / depth..(at + page_width) / depth;
        let to = &mut values[rows.start * value_width..rows.end * value_width];
        convert(&from, to);
        to[page_rows.div_ceil(depth) * value_width..].fill(T::default());
    }

    /// The next rows from `row` on that see keys in the same chunks.
    fn next_run(&self, step: &Step<'_>, mut row: usize, s: &Scratch) -> Option<Run> {
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
            let next = self.next_panel(step, part.page);
            self.scores(&part, next, &queries, s);
        });
        // The softmax reads no panels, so memory is idle; the first values are prefetched already.
        if step.prefetches && step.pages.len() > 1 {
            prefetch_panel(self.stored_values(step.pages.start + 1), self.prefetch_hint);
        }
        self.online_softmax_step(step, run, s);
        self.each_part(step, run, s, |part, s| {
            let next = self.next_panel(step, step.pages.len() + part.page);
            self.values(&part, next, &queries, s);
        });
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
