//! How attention is divided into tasks.

use super::job::AttentionJob;
use crate::aligned::Aligned;
use crate::kv::KvLayout;
use std::ops::Range;

/// Lines (rows × heads that share one KV head) of a task, about.
const QUERIES: usize = 128;
/// Most rows of a task.
const ROWS_MAX: usize = 32;
/// Keys between two corrections of the running maximum, about.
const STEP_KEYS: usize = 128;
/// Steps that are accumulated from nothing and then joined to what came before.
const STEPS_PER_SPLIT: usize = 2;

/// Sizes that follow from the layout alone, so that neither the number of rows nor of threads
/// changes a result.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub(super) head_dim: usize,
    pub(super) page_rows: usize,
    /// Query heads per KV head.
    pub(super) group: usize,
    /// `page_rows`, rounded up to whole vectors.
    pub(super) page_width: usize,
    /// `head_dim`, rounded up to whole vectors.
    pub(super) value_width: usize,
    /// Pages of a step.
    pub(super) step_pages: usize,
}

impl Shape {
    pub(super) fn new(layout: &KvLayout, heads: usize) -> Shape {
        Shape {
            head_dim: layout.head_dim,
            page_rows: layout.page_rows,
            group: heads / layout.kv_heads,
            page_width: layout.page_rows.next_multiple_of(16),
            value_width: layout.head_dim.next_multiple_of(16),
            step_pages: (STEP_KEYS / layout.page_rows).max(1),
        }
    }

    /// Whether pages need no padding.
    pub(super) fn is_aligned(&self) -> bool {
        self.page_width == self.page_rows && self.value_width == self.head_dim
    }

    pub(super) fn split_pages(&self) -> usize {
        self.step_pages * STEPS_PER_SPLIT
    }

    /// Columns of a step's scores.
    pub(super) fn step_width(&self) -> usize {
        self.step_pages * self.page_width
    }

    /// Values of a partial result of `lines`: weighted values, then maxima, then sums.
    pub(super) fn partial_len(&self, queries: usize) -> usize {
        (queries * (self.value_width + 2)).next_multiple_of(16)
    }

    /// Rows of a block: a power of two, so that blocks end where pages do.
    fn rows(&self) -> usize {
        let rows = (QUERIES / self.group).clamp(1, ROWS_MAX);
        1 << rows.ilog2()
    }
}

/// Neighbouring rows of one sequence.
#[derive(Clone, Debug)]
pub(super) struct Block {
    pub(super) rows: Range<usize>,
    pub(super) start_pos: usize,
    /// Span of the job.
    pub(super) span: usize,
    /// Splits that its rows see keys of.
    pub(super) splits: Range<usize>,
    /// First of its units if it is divided: `[kv_head][split]`.
    pub(super) units: Option<usize>,
}

/// One split of a block that is divided along its keys.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unit {
    pub(super) block: usize,
    pub(super) kv_head: usize,
    pub(super) split: usize,
}

/// The tasks of a call; kept for the next one, so that nothing is allocated again.
#[derive(Debug, Default)]
pub(super) struct Plan {
    pub(super) blocks: Vec<Block>,
    pub(super) rows: Vec<Range<usize>>,
    pub(super) units: Vec<Unit>,
    pub(super) partials: Aligned<f32>,
    /// Length of each unit's partial result.
    pub(super) partial_len: usize,
}

impl Plan {
    /// Cuts the spans into blocks, and along the keys those blocks that are too large a part of
    /// the work for `threads` to balance.
    pub(super) fn fill(&mut self, job: &AttentionJob<'_>, shape: &Shape, threads: usize) {
        self.blocks.clear();
        self.rows.clear();
        self.units.clear();
        for (span, of) in job.spans.iter().enumerate() {
            let end_pos = of.start_pos + of.rows.len();
            let room = of.pages.len() * shape.page_rows;
            assert!(room >= end_pos, "too few pages for position {end_pos}");
            for start in of.rows.clone().step_by(shape.rows()) {
                let rows = start..(start + shape.rows()).min(of.rows.end);
                let start_pos = of.start_pos + (start - of.rows.start);
                let split_keys = shape.split_pages() * shape.page_rows;
                let last = (start_pos + rows.len() - 1) / split_keys;
                let splits = job.mask.first_key(start_pos) / split_keys..last + 1;
                self.rows.push(rows.clone());
                self.blocks.push(Block { rows, start_pos, span, splits, units: None });
            }
        }
        self.divide(job.kv.layout().kv_heads, shape, threads);
    }

    fn divide(&mut self, kv_heads: usize, shape: &Shape, threads: usize) {
        let work = |block: &Block| block.rows.len() * block.splits.len();
        let all: usize = self.blocks.iter().map(work).sum::<usize>() * kv_heads;
        let mut queries = 0;
        for (index, block) in self.blocks.iter_mut().enumerate() {
            let large = work(block) * threads * TASKS_PER_THREAD > all;
            if threads == 1 || block.splits.len() == 1 || !large {
                continue;
            }
            block.units = Some(self.units.len());
            queries = queries.max(block.rows.len() * shape.group);
            for kv_head in 0..kv_heads {
                let splits = block.splits.clone();
                self.units.extend(splits.map(|split| Unit { block: index, kv_head, split }));
            }
        }
        self.partial_len = shape.partial_len(queries);
        self.partials.room(self.partial_len * self.units.len());
    }
}

/// A block of more than this part of a thread's share is divided, and its parts are gathered into
/// about as many tasks for each thread.
pub(super) const TASKS_PER_THREAD: usize = 4;
