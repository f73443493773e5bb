//! A dispatch of matmuls, and what its threads read after it.

use super::blocking::{self, BlockingInput, GemmTasks};
use super::op::MATMULS_MAX;
use crate::context::Cpu;
use crate::loops::prefetch_stream::PREFETCH_DISTANCE_MAX;
use crate::loops::quantize::QuantScheme;
use crate::packed::OutputChannels;
use crate::packed::layout::TILE;
use crate::pool::{AfterBlock, IdlePrefetch, NextBlock};

/// A dispatch of matmuls.
#[derive(Clone, Debug, Default)]
pub struct Dispatch<'a> {
    /// Rows of activations (m).
    pub(crate) rows: usize,
    /// Its division into tasks for one row, if precomputed.
    pub(crate) gemv_plan: Option<&'a GemvPlan>,
    /// The next dispatch of matmuls; assumed to have as many rows.
    pub(crate) next: NextDispatch<'a>,
}

/// The weights of the next dispatch. Memory is idle while threads synchronise and while one of them
/// prepares the next input. So each thread prefetches the start of its next weights at the end of
/// the current ones, and continues while it waits.
#[derive(Clone, Debug, Default)]
pub(crate) struct NextDispatch<'a> {
    /// Weights of each matmul; for a gated epilogue without `up`.
    pub(crate) weights: [Option<OutputChannels<'a>>; MATMULS_MAX],
    /// Whether the only matmul has a gated epilogue.
    pub(crate) is_gated: bool,
    /// The scheme in which the output is quantised on the fly, if it is.
    pub(crate) output_scheme: Option<QuantScheme>,
    /// As [`Dispatch::gemv_plan`].
    pub(crate) gemv_plan: Option<&'a GemvPlan>,
}

/// Division of a one-row dispatch (GEMV) into tasks. It is the same for every token, so it is
/// computed once, not on the thread that the others wait for.
#[derive(Debug)]
pub(crate) struct GemvPlan {
    pub(super) tasks: GemmTasks<MATMULS_MAX>,
    /// The matmul and the column that each thread starts with.
    first: Vec<Option<(usize, usize)>>,
}

/// End of a block: the channel after its last, of matrix `index` of the dispatch.
#[derive(Clone, Copy, Debug)]
pub(super) struct BlockEnd {
    pub(super) index: usize,
    pub(super) channel: usize,
}

impl Dispatch<'_> {
    /// A dispatch of this many rows, without a known successor.
    pub fn of(rows: usize) -> Dispatch<'static> {
        Dispatch { rows, ..Dispatch::default() }
    }

    /// Its tasks, multiples of `unit` tiles, given what its matmuls read.
    pub(super) fn tasks<'b>(
        &self,
        ctx: &Cpu,
        unit: usize,
        reads: impl FnOnce() -> [Option<BlockingInput<'b>>; MATMULS_MAX],
    ) -> GemmTasks<MATMULS_MAX> {
        match self.gemv_plan {
            Some(known) if self.rows == 1 => {
                debug_assert_eq!(known.tasks, blocking::partition(ctx, 1, unit, &reads()));
                known.tasks
            }
            _ => blocking::partition(ctx, self.rows, unit, &reads()),
        }
    }
}

/// Data that a thread reads after a block and the following blocks of its rows; `None` if that is
/// too far ahead to prefetch. `first_read` is what it reads first in the next dispatch.
pub(super) fn read_after<'a>(
    ctx: &Cpu,
    BlockEnd { index, channel }: BlockEnd,
    AfterBlock { until, next }: AfterBlock,
    weights: impl Fn(usize) -> Option<OutputChannels<'a>>,
    first_read: FirstRead<'_, 'a>,
) -> Option<&'a [u8]> {
    let meanwhile = weights(index)?.packed().tile_bytes() * (until - channel).div_ceil(TILE);
    if meanwhile >= PREFETCH_DISTANCE_MAX {
        return None;
    }
    match next {
        NextBlock::Block { index, col } => Some(weights(index)?.bytes_from(col)),
        NextBlock::EndOfJob { thread } => {
            let next = first_read(thread)?;
            IdlePrefetch::of(&ctx.caches(), next, PREFETCH_DISTANCE_MAX).register();
            Some(next)
        }
    }
}

/// Data that a thread reads first in the next dispatch, if it gets a task.
pub(crate) type FirstRead<'f, 'a> = &'f (dyn Fn(usize) -> Option<&'a [u8]> + Sync);

impl<'a> NextDispatch<'a> {
    fn tasks(&self, ctx: &Cpu, m: usize) -> GemmTasks<MATMULS_MAX> {
        let unit = blocking::unit_of(self.output_scheme);
        let reads = self.weights.each_ref().map(|weight| {
            let weight = weight.as_ref()?.clone();
            Some(BlockingInput { weight, is_gated: self.is_gated })
        });
        blocking::partition(ctx, m, unit, &reads)
    }

    /// Divides it into tasks for one row.
    pub(crate) fn gemv_plan(&self, ctx: &Cpu) -> GemvPlan {
        let (tasks, pool) = (self.tasks(ctx, 1), ctx.pool());
        let threads = 0..pool.threads();
        let first = threads.map(|thread| pool.first_block(tasks.blocks, thread)).collect();
        GemvPlan { tasks, first }
    }

    /// Data that a thread reads first, if it gets a task.
    pub(crate) fn first_read(&self, ctx: &Cpu, m: usize, thread: usize) -> Option<&'a [u8]> {
        let (index, col) = match self.gemv_plan {
            Some(known) if m == 1 => known.first.get(thread).copied().flatten(),
            _ => ctx.pool().first_block(self.tasks(ctx, m).blocks, thread),
        }?;
        self.weights[index].as_ref().map(|weight| weight.bytes_from(col))
    }
}
