//! What a dispatch computes, and what will most likely be read after it.

use super::blocking::{self, BlockingInput, Tasks};
use super::op::MATMULS_MAX;
use crate::cpu::context::Cpu;
use crate::cpu::loops::prefetch_stream::PREFETCH_DISTANCE_MAX;
use crate::cpu::loops::quantize::QuantScheme;
use crate::cpu::packed::OutputChannels;
use crate::cpu::packed::layout::TILE;
use crate::cpu::pool::{AfterBlock, IdlePrefetch, NextBlock};

/// A dispatch of products.
#[derive(Clone, Debug, Default)]
pub(crate) struct Dispatch<'a> {
    /// Rows of activations (m).
    pub(crate) rows: usize,
    /// How it is cut where it has one row, if that is known.
    pub(crate) gemv_plan: Option<&'a GemvPlan>,
    /// The next dispatch of products, taken to have as many rows.
    pub(crate) next: NextDispatch<'a>,
}

/// The weights of a dispatch to come. Memory is idle while threads meet and while one of them
/// prepares what the others wait for; each thread asks for the beginning of what it will read
/// next at the end of what it reads now, and goes on with it while it waits.
#[derive(Clone, Debug, Default)]
pub(crate) struct NextDispatch<'a> {
    /// Of each product; of a gate without its `up`.
    pub(crate) weights: [Option<OutputChannels<'a>>; MATMULS_MAX],
    /// Whether the only product is a gate.
    pub(crate) is_gate: bool,
    /// As what the values will be quantised as they come, if so.
    pub(crate) output_scheme: Option<QuantScheme>,
    /// As [`Dispatch::gemv_plan`].
    pub(crate) gemv_plan: Option<&'a GemvPlan>,
}

/// How a dispatch of one row is cut: the same for every token, and found anew it would be on the thread
/// that the others wait for.
#[derive(Debug)]
pub(crate) struct GemvPlan {
    pub(super) tasks: Tasks<MATMULS_MAX>,
    /// The product and the column that each thread begins with.
    first: Vec<Option<(usize, usize)>>,
}

impl Dispatch<'_> {
    /// Of so many rows; nothing is known of what follows.
    pub(crate) fn of(rows: usize) -> Dispatch<'static> {
        Dispatch { rows, ..Dispatch::default() }
    }

    /// Its tasks, with what its products read; each is a multiple of `unit` tiles.
    pub(super) fn tasks<'b>(
        &self,
        ctx: &Cpu,
        unit: usize,
        reads: impl FnOnce() -> [Option<BlockingInput<'b>>; MATMULS_MAX],
    ) -> Tasks<MATMULS_MAX> {
        match self.gemv_plan {
            Some(known) if self.rows == 1 => {
                debug_assert_eq!(known.tasks, blocking::cut(ctx, (1, unit), &reads()));
                known.tasks
            }
            _ => blocking::cut(ctx, (self.rows, unit), &reads()),
        }
    }
}

impl<'a> Dispatch<'a> {
    /// What a thread reads after a block of matrix `index` that ends with feature `end`, and after
    /// those beside it, if that is near enough to be asked for in the meantime.
    pub(super) fn read_after<'b>(
        &self,
        ctx: &Cpu,
        (index, end): (usize, usize),
        AfterBlock { until, next }: AfterBlock,
        weights: impl Fn(usize) -> Option<&'b OutputChannels<'a>>,
    ) -> Option<&'a [u8]>
    where
        'a: 'b,
    {
        let meanwhile = weights(index)?.packed().tile_bytes() * (until - end).div_ceil(TILE);
        if meanwhile >= PREFETCH_DISTANCE_MAX {
            return None;
        }
        match next {
            NextBlock::Block { index, col } => Some(weights(index)?.bytes_from(col)),
            NextBlock::EndOfJob { thread } => {
                let next = self.next.first_read(ctx, self.rows, thread)?;
                IdlePrefetch::of(&ctx.caches(), next, PREFETCH_DISTANCE_MAX).register();
                Some(next)
            }
        }
    }
}

impl<'a> NextDispatch<'a> {
    fn tasks(&self, ctx: &Cpu, m: usize) -> Tasks<MATMULS_MAX> {
        let unit = self.output_scheme.map_or(1, |kind| kind.columns() / TILE);
        let reads = self.weights.each_ref().map(|weight| {
            let weight = weight.as_ref()?.clone();
            Some(BlockingInput { weight, is_gate: self.is_gate })
        });
        blocking::cut(ctx, (m, unit), &reads)
    }

    /// How it is cut for one row.
    pub(crate) fn gemv_plan(&self, ctx: &Cpu) -> GemvPlan {
        let (tasks, pool) = (self.tasks(ctx, 1), ctx.pool());
        let threads = 0..pool.threads();
        let first = threads.map(|thread| pool.first_block(tasks.blocks, thread)).collect();
        GemvPlan { tasks, first }
    }

    /// What a thread reads first, if it has a task.
    pub(super) fn first_read(&self, ctx: &Cpu, m: usize, thread: usize) -> Option<&'a [u8]> {
        let (index, col) = match self.gemv_plan {
            Some(known) if m == 1 => known.first.get(thread).copied().flatten(),
            _ => ctx.pool().first_block(self.tasks(ctx, m).blocks, thread),
        }?;
        self.weights[index].as_ref().map(|weight| weight.bytes_from(col))
    }
}
