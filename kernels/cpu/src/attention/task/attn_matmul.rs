//! The matmuls of a step: scores, and weighted values.

use super::step::{Run, Step};
use super::{Scratch, Task};
use crate::attention::plan::AttentionShape;
use crate::loops::attn_bf16::PairPanel;
use crate::loops::attn_matmul::{AttnMatmul, MatmulDims};
use lapwing_model::kv::Panel;
use std::ops::Range;

/// Columns of a step, from a multiple of 16 on.
pub(super) struct Part {
    columns: Range<usize>,
    /// Index of its first page in the step.
    pub(super) page: usize,
    /// Index of that page in the sequence, if pages are read as stored.
    stored: Option<usize>,
}

impl Task<'_> {
    /// Calls `f` for each range of columns with unmasked keys, up to the last unmasked key. If
    /// pages are read as stored, each page's part of a range is separate.
    pub(super) fn each_part(
        &self,
        step: &Step<'_>,
        run: &Run,
        s: &mut Scratch,
        f: impl Fn(Part, &mut Scratch),
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
            let stored = step.direct.then_some(step.pages.start + page);
            let columns = at * 16..(end - 1) * 16 + last;
            f(Part { columns, page, stored }, s);
            at = end;
        }
    }

    pub(super) fn scores(
        &self,
        part: &Part,
        next: Option<Panel<'_>>,
        queries: &Range<usize>,
        s: &mut Scratch,
    ) {
        let AttentionShape { key_dim, page_rows, .. } = self.shape;
        let (start, width) = (part.columns.start, self.shape.step_width());
        let dims = MatmulDims {
            rows: queries.len(),
            depth: key_dim,
            chunks: part.columns.len().div_ceil(16),
            c_stride: width,
            add: false,
            next,
            prefetch_hint: self.prefetch_hint,
        };
        let skipped = start - part.page * self.shape.page_width;
        let stored = part.stored.map(|page| self.stored_keys(page).skip(skipped));
        let b_stride = if stored.is_some() { page_rows } else { width };
        let c = &mut s.scores[queries.start * width + start..];
        let Some(attn_bf16) = self.attn_bf16 else {
            let b = stored.unwrap_or_else(|| Panel::F32(&s.keys[start..]));
            let a = &s.q[queries.start * key_dim..];
            let product = AttnMatmul { a, a_stride: key_dim, b, b_stride, dims };
            return (self.kernels.attn_matmul)(&product, c);
        };
        let b = stored.map_or_else(|| PairPanel::Packed(&s.pairs.keys[start..]), PairPanel::Stored);
        let a_stride = key_dim.div_ceil(2);
        let a = &s.pairs.q[queries.start * a_stride..];
        (attn_bf16.matmul)(&AttnMatmul { a, a_stride, b, b_stride, dims }, c);
    }

    pub(super) fn values(
        &self,
        part: &Part,
        next: Option<Panel<'_>>,
        queries: &Range<usize>,
        s: &mut Scratch,
    ) {
        let (value_width, width) = (self.shape.value_width, self.shape.step_width());
        let start = part.columns.start;
        let dims = MatmulDims {
            rows: queries.len(),
            depth: part.columns.len(),
            chunks: value_width / 16,
            c_stride: value_width,
            add: true,
            next,
            prefetch_hint: self.prefetch_hint,
        };
        let skipped = (start - part.page * self.shape.page_width) * value_width;
        let stored = part.stored.map(|page| self.stored_values(page).skip(skipped));
        let (b_stride, first) = (value_width, queries.start * width + start);
        let c = &mut s.acc[queries.start * value_width..];
        let Some(attn_bf16) = self.attn_bf16 else {
            let b = stored.unwrap_or_else(|| Panel::F32(&s.values[start * value_width..]));
            let product = AttnMatmul { a: &s.scores[first..], a_stride: width, b, b_stride, dims };
            return (self.kernels.attn_matmul)(&product, c);
        };
        let made = || PairPanel::Packed(&s.pairs.values[start / 2 * value_width..]);
        let b = stored.map_or_else(made, PairPanel::Stored);
        let (a, a_stride) = (&s.pairs.weights[first / 2..], width / 2);
        (attn_bf16.matmul)(&AttnMatmul { a, a_stride, b, b_stride, dims }, c);
    }
}
