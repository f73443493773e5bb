//! What a dispatch computes, and what will most likely be read after it.

use super::PRODUCTS_MAX;
use super::blocking::{self, Reads, Tasks};
use crate::cpu::Cpu;
use crate::cpu::ahead::DISTANCE_MAX;
use crate::cpu::packed::Features;
use crate::cpu::pool::{After, Next, Wanted};
use crate::cpu::quantize::ActKind;
use crate::cpu::tile::TILE;

/// A dispatch of products.
#[derive(Clone, Debug, Default)]
pub(crate) struct Dispatch<'a> {
    /// Rows of activations (m).
    pub(crate) rows: usize,
    /// How it is cut where it has one row, if that is known.
    pub(crate) one_row: Option<&'a RowTasks>,
    /// The next dispatch of products, taken to have as many rows.
    pub(crate) next: Upcoming<'a>,
}

/// The weights of a dispatch to come. Memory is idle while threads meet and while one of them
/// prepares what the others wait for; each thread asks for the beginning of what it will read
/// next at the end of what it reads now, and goes on with it while it waits.
#[derive(Clone, Debug, Default)]
pub(crate) struct Upcoming<'a> {
    /// Of each product; of a gate without its `up`.
    pub(crate) weights: [Option<Features<'a>>; PRODUCTS_MAX],
    /// Whether the only product is a gate.
    pub(crate) is_gate: bool,
    /// As what the values will be quantised as they come, if so.
    pub(crate) form: Option<ActKind>,
    /// As [`Dispatch::one_row`].
    pub(crate) one_row: Option<&'a RowTasks>,
}

/// How a dispatch of one row is cut: the same for every token, and found anew it would be on the thread
/// that the others wait for.
#[derive(Debug)]
pub(crate) struct RowTasks {
    pub(super) tasks: Tasks<PRODUCTS_MAX>,
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
        reads: impl FnOnce() -> [Option<Reads<'b>>; PRODUCTS_MAX],
    ) -> Tasks<PRODUCTS_MAX> {
        match self.one_row {
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
        After { until, next }: After,
        weights: impl Fn(usize) -> Option<&'b Features<'a>>,
    ) -> Option<&'a [u8]>
    where
        'a: 'b,
    {
        let meanwhile = weights(index)?.packed().tile_bytes() * (until - end).div_ceil(TILE);
        if meanwhile >= DISTANCE_MAX {
            return None;
        }
        match next {
            Next::Block { index, col } => Some(weights(index)?.bytes_from(col)),
            Next::Nothing { thread } => {
                let next = self.next.first_read(ctx, self.rows, thread)?;
                Wanted::of(&ctx.caches(), next, DISTANCE_MAX).note();
                Some(next)
            }
        }
    }
}

impl<'a> Upcoming<'a> {
    fn tasks(&self, ctx: &Cpu, m: usize) -> Tasks<PRODUCTS_MAX> {
        let unit = self.form.map_or(1, |kind| kind.columns() / TILE);
        let reads = self.weights.each_ref().map(|weight| {
            let weight = weight.as_ref()?.clone();
            Some(Reads { weight, is_gate: self.is_gate })
        });
        blocking::cut(ctx, (m, unit), &reads)
    }

    /// How it is cut for one row.
    pub(crate) fn row_tasks(&self, ctx: &Cpu) -> RowTasks {
        let (tasks, pool) = (self.tasks(ctx, 1), ctx.pool());
        let threads = 0..pool.threads();
        let first = threads.map(|thread| pool.first_block(tasks.blocks, thread)).collect();
        RowTasks { tasks, first }
    }

    /// What a thread reads first, if it has a task.
    pub(super) fn first_read(&self, ctx: &Cpu, m: usize, thread: usize) -> Option<&'a [u8]> {
        let (index, col) = match self.one_row {
            Some(known) if m == 1 => known.first.get(thread).copied().flatten(),
            _ => ctx.pool().first_block(self.tasks(ctx, m).blocks, thread),
        }?;
        self.weights[index].as_ref().map(|weight| weight.bytes_from(col))
    }
}
