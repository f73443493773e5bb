//! Causal attention over KV pages: online softmax page by page, so that no row of scores
//! is ever held; pages beyond the causal edge or before the window are not visited.
//!
//! A task is a block of query rows × the heads that share one KV head (or a part of them),
//! which load each page once. A row's result depends only on its own position: pages are
//! visited in order, from absolute boundaries, and rows that see nothing of a page skip it.

use crate::cpu::Cpu;
use crate::cpu::gemm::Gemm;
use crate::cpu::pool::{ColumnBlock, Grid};
use crate::cpu::softmax::{Online, PageMask};
use crate::kv::{KvLayer, PageId};
use std::cell::RefCell;
use std::ops::Range;

/// Query rows that share the work of loading a page.
const ROWS: usize = 16;

/// Consecutive positions of one sequence.
#[derive(Clone, Debug)]
pub struct AttentionSpan<'a> {
    /// Rows of `q` and of the output.
    pub rows: Range<usize>,
    /// Position of the first of them.
    pub start_pos: usize,
    /// Pages of the sequence, the first holding position 0. Keys and values of all
    /// positions up to the last row's must have been written.
    pub pages: &'a [PageId],
}

/// What to attend to.
#[derive(Clone, Debug)]
pub struct AttentionJob<'a> {
    /// Keys and values of the layer; its layout has the number of KV heads and the head's size.
    pub kv: &'a KvLayer<'a>,
    /// `[rows][heads][head_dim]`.
    pub q: &'a [f32],
    /// Spans with ascending, disjoint rows.
    pub spans: &'a [AttentionSpan<'a>],
    /// Query heads, a multiple of the KV heads; neighbours share a KV head.
    pub heads: usize,
    /// Factor on the scores, usually 1/√head_dim.
    pub scale: f32,
    /// Positions that a row sees, itself included; `None` = all before it.
    pub window: Option<usize>,
    /// `cap · tanh(score / cap)` on the scaled scores.
    pub soft_cap: Option<f32>,
}

struct Block<'a> {
    rows: Range<usize>,
    start_pos: usize,
    pages: &'a [PageId],
}

#[derive(Default)]
struct Scratch {
    q: Vec<f32>,
    page: Vec<f32>,
    scores: Vec<f32>,
    acc: Vec<f32>,
    online: Vec<Online>,
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

/// Attention of every row of the spans; `out` is `[rows][heads][head_dim]`, and rows in no
/// span are left alone. The row at position p sees keys `max(0, p + 1 − window) ..= p`.
///
/// # Panics
/// When sizes do not fit, spans overlap, or a span has too few pages.
pub fn attention(ctx: &Cpu, job: &AttentionJob<'_>, out: &mut [f32]) {
    let layout = job.kv.layout();
    let width = job.heads * layout.head_dim;
    assert_eq!(job.q.len(), out.len(), "q and out differ in length");
    assert!(out.len().is_multiple_of(width), "q is not whole rows of heads × head_dim");
    assert!(job.heads.is_multiple_of(layout.kv_heads), "heads is no multiple of the KV heads");
    assert!(job.window != Some(0), "an empty window");
    let blocks = blocks(job);
    let rows: Vec<_> = blocks.iter().map(|b| b.rows.clone()).collect();
    let group = job.heads / layout.kv_heads;
    let mut heads = group;
    while heads.is_multiple_of(2) && blocks.len() * job.heads / heads < ctx.pool().threads() {
        heads /= 2;
    }
    let grid = Grid { row_len: width, row_blocks: &rows, col_chunk: heads * layout.head_dim };
    ctx.pool().grid_mut(out, &grid, |i, col, mut out| {
        let head = col / layout.head_dim;
        let mut scratch = SCRATCH.take();
        Task { ctx, job, block: &blocks[i], head, heads, kv_head: head / group }
            .run(&mut scratch, &mut out);
        SCRATCH.set(scratch);
    });
}

/// Cuts the spans into blocks of [`ROWS`].
fn blocks<'a>(job: &'a AttentionJob<'_>) -> Vec<Block<'a>> {
    let page_rows = job.kv.layout().page_rows;
    let mut blocks = Vec::new();
    for span in job.spans {
        let end_pos = span.start_pos + span.rows.len();
        assert!(span.pages.len() * page_rows >= end_pos, "too few pages for position {end_pos}");
        for start in span.rows.clone().step_by(ROWS) {
            blocks.push(Block {
                rows: start..(start + ROWS).min(span.rows.end),
                start_pos: span.start_pos + (start - span.rows.start),
                pages: span.pages,
            });
        }
    }
    blocks
}

struct Task<'a> {
    ctx: &'a Cpu,
    job: &'a AttentionJob<'a>,
    block: &'a Block<'a>,
    head: usize,
    heads: usize,
    kv_head: usize,
}

impl Task<'_> {
    fn run(&self, s: &mut Scratch, out: &mut ColumnBlock<'_, f32>) {
        let head_dim = self.job.kv.layout().head_dim;
        let (rows, width) = (self.block.rows.len(), self.heads * head_dim);
        s.q.clear();
        for row in self.block.rows.clone() {
            let at = (row * self.job.heads + self.head) * head_dim;
            s.q.extend_from_slice(&self.job.q[at..][..width]);
        }
        s.acc.clear();
        s.acc.resize(rows * width, 0.0);
        s.online.clear();
        s.online.resize(rows * self.heads, Online::START);
        let page_rows = self.job.kv.layout().page_rows;
        let first = self.first_key(self.block.start_pos) / page_rows;
        let last = (self.block.start_pos + rows - 1) / page_rows;
        for page in first..=last {
            self.page(page, s);
        }
        for row in 0..rows {
            let lines = s.acc[row * width..][..width].chunks_exact(head_dim);
            let to = out.row_mut(row).chunks_exact_mut(head_dim);
            for ((to, acc), online) in to.zip(lines).zip(&s.online[row * self.heads..]) {
                let inverse = 1.0 / online.sum;
                to.iter_mut().zip(acc).for_each(|(to, acc)| *to = acc * inverse);
            }
        }
    }

    /// First key that the row at `pos` sees.
    fn first_key(&self, pos: usize) -> usize {
        self.job.window.map_or(0, |w| (pos + 1).saturating_sub(w))
    }

    /// Rows of the block that see any key of the page that starts at key `start`.
    fn active(&self, start: usize) -> Range<usize> {
        let page_rows = self.job.kv.layout().page_rows;
        let pos = self.block.start_pos;
        let from = start.saturating_sub(pos);
        let end =
            self.job.window.map_or(usize::MAX, |w| (start + page_rows + w - 1).saturating_sub(pos));
        from..end.min(self.block.rows.len())
    }

    fn page(&self, page: usize, s: &mut Scratch) {
        let layout = *self.job.kv.layout();
        let (page_rows, head_dim) = (layout.page_rows, layout.head_dim);
        let start = page * page_rows;
        let active = self.active(start);
        if active.is_empty() {
            return;
        }
        let kernels = self.ctx.kernels();
        let id = self.block.pages[page];
        let (keys, values) = self.job.kv.head(id, self.kv_head);
        let lines = active.start * self.heads..active.end * self.heads;
        s.page.resize(page_rows * head_dim, 0.0);
        s.scores.clear();
        s.scores.resize(lines.len() * page_rows, 0.0);
        (kernels.f16_to_f32)(keys, &mut s.page);
        let scores = Gemm {
            a: &s.q[lines.start * head_dim..],
            a_stride: head_dim,
            b: &s.page,
            b_stride: page_rows,
            c_stride: page_rows,
            rows: lines.len(),
            depth: head_dim,
            width: page_rows,
        };
        (kernels.gemm)(&scores, &mut s.scores);
        for (i, line) in lines.clone().enumerate() {
            let pos = self.block.start_pos + line / self.heads;
            let mask = PageMask {
                keys: self.first_key(pos).saturating_sub(start)..(pos + 1 - start).min(page_rows),
                scale: self.job.scale,
                soft_cap: self.job.soft_cap,
            };
            let scores = &mut s.scores[i * page_rows..][..page_rows];
            let correction = (kernels.softmax)(scores, &mask, &mut s.online[line]);
            if correction != 1.0 {
                (kernels.scale)(&mut s.acc[line * head_dim..][..head_dim], correction);
            }
        }
        (kernels.f16_to_f32)(values, &mut s.page);
        let last_pos = self.block.start_pos + active.end - 1;
        let weighted = Gemm {
            a: &s.scores,
            a_stride: page_rows,
            b: &s.page,
            b_stride: head_dim,
            c_stride: head_dim,
            rows: lines.len(),
            depth: (last_pos + 1 - start).min(page_rows),
            width: head_dim,
        };
        (kernels.gemm)(&weighted, &mut s.acc[lines.start * head_dim..]);
    }
}
