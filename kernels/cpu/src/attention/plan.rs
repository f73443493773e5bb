//! How attention is divided into tasks.

use super::job::AttentionJob;
use lapwing_model::aligned::Aligned;
use lapwing_model::kv::{KvHeads, KvPageLayout};
use std::ops::Range;

/// Approximate number of queries (rows × heads that share one KV head) of a task.
const QUERIES: usize = 128;
/// Most rows of a task.
const ROWS_MAX: usize = 32;
/// Approximate number of keys between two updates of the running maximum.
const STEP_KEYS: usize = 128;
/// Steps per split.
const STEPS_PER_SPLIT: usize = 2;

/// Sizes that follow from the layout alone, so that a result depends neither on the number of rows
/// nor on that of threads.
#[derive(Clone, Copy, Debug)]
pub(super) struct AttentionShape {
    pub(super) key_dim: usize,
    pub(super) value_dim: usize,
    pub(super) page_rows: usize,
    /// Query heads per KV head.
    pub(super) group: usize,
    /// `page_rows`, rounded up to whole vectors.
    pub(super) page_width: usize,
    /// `value_dim`, rounded up to whole vectors.
    pub(super) value_width: usize,
    /// Pages of a step.
    pub(super) step_pages: usize,
}

impl AttentionShape {
    pub(super) fn new(layout: &KvPageLayout, heads: usize) -> AttentionShape {
        let KvHeads { count, key_dim, value_dim } = layout.heads;
        AttentionShape {
            key_dim,
            value_dim,
            page_rows: layout.page_rows,
            group: heads / count,
            page_width: layout.page_rows.next_multiple_of(16),
            value_width: value_dim.next_multiple_of(16),
            step_pages: (STEP_KEYS / layout.page_rows).max(1),
        }
    }

    /// Whether pages need no padding.
    pub(super) fn is_aligned(&self) -> bool {
        self.page_width == self.page_rows && self.value_width == self.value_dim
    }

    pub(super) fn split_pages(&self) -> usize {
        self.step_pages * STEPS_PER_SPLIT
    }

    /// Columns of a step's scores.
    pub(super) fn step_width(&self) -> usize {
        self.step_pages * self.page_width
    }

    /// Values of a partial result: weighted values, then maxima, then sums.
    pub(super) fn partial_len(&self, queries: usize) -> usize {
        (queries * (self.value_width + 2)).next_multiple_of(16)
    }

    /// Rows of a block: a power of two, so that block boundaries coincide with page boundaries.
    fn rows(&self) -> usize {
        let rows = (QUERIES / self.group).clamp(1, ROWS_MAX);
        1 << rows.ilog2()
    }
}

/// Consecutive rows of one sequence.
#[derive(Clone, Debug)]
pub(super) struct Block {
    pub(super) rows: Range<usize>,
    pub(super) start_pos: usize,
    /// End of the keys that the rows see.
    pub(super) keys_end: usize,
    /// Index of the sequence in the job.
    pub(super) sequence: usize,
    /// Splits with keys that the rows see.
    pub(super) splits: Range<usize>,
    /// First of its split tasks if it is divided: `[kv_head][split]`.
    pub(super) split_tasks: Option<usize>,
}

/// One split of a block that is divided along its keys.
#[derive(Clone, Copy, Debug)]
pub(super) struct SplitTask {
    pub(super) block: usize,
    pub(super) kv_head: usize,
    pub(super) split: usize,
}

/// The tasks of a call; reused by the next call without allocation.
#[derive(Debug, Default)]
pub(super) struct Plan {
    pub(super) blocks: Vec<Block>,
    pub(super) rows: Vec<Range<usize>>,
    pub(super) split_tasks: Vec<SplitTask>,
    pub(super) partials: Aligned<f32>,
    /// Length of the partial result of a split task.
    pub(super) partial_len: usize,
}

impl Plan {
    /// Divides the sequences into blocks, and divides blocks along the keys if they are too large
    /// for `threads` to balance.
    pub(super) fn fill(&mut self, job: &AttentionJob<'_>, shape: &AttentionShape, threads: usize) {
        self.blocks.clear();
        self.rows.clear();
        self.split_tasks.clear();
        for (sequence, of) in job.sequences.iter().enumerate() {
            let end_pos = of.start_pos + of.rows.len();
            let room = of.pages.len() * shape.page_rows;
            assert!(room >= end_pos, "too few pages for position {end_pos}");
            for start in of.rows.clone().step_by(shape.rows()) {
                let rows = start..(start + shape.rows()).min(of.rows.end);
                let start_pos = of.start_pos + (start - of.rows.start);
                let split_keys = shape.split_pages() * shape.page_rows;
                let keys_end = job.mask.keys_end(start_pos + rows.len(), end_pos);
                let last = (keys_end - 1) / split_keys;
                let splits = job.mask.first_key(start_pos) / split_keys..last + 1;
                self.rows.push(rows.clone());
                let split_tasks = None;
                let block = Block { rows, start_pos, keys_end, sequence, splits, split_tasks };
                self.blocks.push(block);
            }
        }
        self.divide(job.kv.layout().heads.count, shape, threads);
    }

    fn divide(&mut self, kv_heads: usize, shape: &AttentionShape, threads: usize) {
        let work = |block: &Block| block.rows.len() * block.splits.len();
        let all: usize = self.blocks.iter().map(work).sum::<usize>() * kv_heads;
        let mut queries = 0;
        for (index, block) in self.blocks.iter_mut().enumerate() {
            let large = work(block) * threads * TASKS_PER_THREAD > all;
            if threads == 1 || block.splits.len() == 1 || !large {
                continue;
            }
            block.split_tasks = Some(self.split_tasks.len());
            queries = queries.max(block.rows.len() * shape.group);
            for kv_head in 0..kv_heads {
                let splits = block.splits.clone();
                self.split_tasks.extend(splits.map(|split| SplitTask {
                    block: index,
                    kv_head,
                    split,
                }));
            }
        }
        self.partial_len = shape.partial_len(queries);
        self.partials.room(self.partial_len * self.split_tasks.len());
    }
}

/// A block of more than 1/4 of a thread's share is divided along its keys; the split tasks are
/// grouped into about 4 pool tasks per thread.
pub(super) const TASKS_PER_THREAD: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attention::job::AttentionSequence;
    use lapwing_model::kv::{KvDtype, KvLayout, KvStore, PageId};
    use lapwing_model::mask::Mask;

    const HEADS: KvHeads = KvHeads::new(2, 16);

    /// The plan of one row of each sequence, at these positions.
    fn plan(positions: &[usize], threads: usize) -> Plan {
        let pages: Vec<PageId> = (0..64).collect();
        let layout = KvLayout::uniform(1, HEADS, 32, KvDtype::F16);
        let store = KvStore::new(layout.clone(), 64).expect("memory");
        let one = |(row, pos): (usize, &usize)| AttentionSequence {
            rows: row..row + 1,
            start_pos: *pos,
            pages: &pages,
        };
        let sequences: Vec<_> = positions.iter().enumerate().map(one).collect();
        let q = vec![0.0; positions.len() * 4 * HEADS.key_dim];
        let job = AttentionJob {
            q: &q,
            heads: 4,
            scale: 1.0,
            slopes: None,
            sinks: None,
            soft_cap: None,
            mask: &Mask::Causal,
            kv: &store.layer(0),
            sequences: &sequences,
        };
        let mut plan = Plan::default();
        plan.fill(&job, &AttentionShape::new(&layout.layer(0), job.heads), threads);
        plan
    }

    #[test]
    fn a_long_row_is_divided_so_that_every_thread_has_a_share() {
        for threads in [2, 3, 5] {
            let plan = plan(&[3, 1999, 40, 0], threads);
            let long = &plan.blocks[1];
            assert_eq!(long.splits.len(), 8, "256 keys each");
            let tasks = plan.split_tasks.iter().filter(|task| task.block == 1);
            let mut found: Vec<_> = tasks.map(|task| (task.kv_head, task.split)).collect();
            found.sort_unstable();
            let all = |kv_head| long.splits.clone().map(move |split| (kv_head, split));
            assert_eq!(found, (0..2).flat_map(all).collect::<Vec<_>>(), "{threads} threads");
            assert!(found.len() >= 2 * threads);
            assert!(plan.blocks.iter().all(|b| b.split_tasks.is_some() == (b.splits.len() > 1)));
        }
        assert!(plan(&[3, 1999, 40, 0], 1).split_tasks.is_empty(), "one thread runs all of it");
    }
}
