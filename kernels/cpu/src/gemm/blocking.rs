//! Blocking of matmuls for the caches.

use super::op::Matmul;
use crate::context::Cpu;
use crate::loops::quantize::{Q8Block, QuantScheme};
use crate::packed::OutputChannels;
use crate::packed::layout::{GROUP, SUPER_GROUPS, TILE};
use crate::pool::{BlockGrid, GridList, RowGroup};
use std::ops::Range;

/// Fewest weights of a task (or products of weights and rows, if larger), so that claims cost
/// little.
const TASK_WEIGHTS: usize = 1 << 17;
/// Fewest weights of a task of one row, and most weights of a claim. One row is memory-bound, and
/// bandwidth is idle while one thread has finished and another has not, so the last claims are
/// small.
const ROW_WEIGHTS: usize = 1 << 14;
const CLAIM_WEIGHTS: usize = 1 << 20;
const TASK_PRODUCTS: usize = 1 << 22;
/// Fewest tiles of a task of many rows, unless that leaves too few tasks: writing four consecutive
/// cache lines of each row takes less time than two here and two there.
const ROW_TILES: usize = 4;

/// Groups of a panel, at most `most`, for a matrix of `groups` groups: all if they fit, since
/// between panels the sums leave the registers.
pub(super) fn panel_of(most: usize, groups: usize) -> usize {
    if groups <= most { groups } else { most / SUPER_GROUPS * SUPER_GROUPS }
}

/// The inputs from which a matmul's blocking is chosen.
#[derive(Clone, Debug)]
pub(crate) struct BlockingInput<'a> {
    pub(crate) weight: OutputChannels<'a>,
    /// Whether it has a gated epilogue, which reads `up` too.
    pub(crate) is_gated: bool,
}

impl<'a> BlockingInput<'a> {
    pub(super) fn of(product: &Matmul<'a>) -> BlockingInput<'a> {
        BlockingInput { weight: product.weight.clone(), is_gated: product.is_gated() }
    }
}

/// The tasks of a dispatch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct GemmTasks<const N: usize> {
    /// Block grid of each matmul; `None` without output channels.
    pub(super) blocks: [Option<BlockGrid>; N],
    /// Most tasks of a claim.
    pub(super) max_claim: usize,
}

/// Divides a dispatch of matmuls of `m` rows into tasks of multiples of `unit` tiles.
pub(super) fn partition<const N: usize>(
    ctx: &Cpu,
    m: usize,
    unit: usize,
    products: &[Option<BlockingInput<'_>>; N],
) -> GemmTasks<N> {
    let tiles = products.iter().flatten().map(|reads| reads.weight.tiles().len()).sum();
    let mut max_claim = if m == 1 { usize::MAX } else { 1 };
    let blocks = products.each_ref().map(|reads| {
        let reads = reads.as_ref().filter(|reads| !reads.weight.is_empty())?;
        let blocking = Blocking::of(ctx, reads, m, tiles, unit);
        if m == 1 {
            max_claim = max_claim.min(blocking.max_claim(reads));
        }
        Some(blocking.grid(reads, 0..m))
    });
    GemmTasks { blocks, max_claim }
}

/// Divides a dispatch of a matmul of each group of rows into tasks; returns the most tasks of a claim. The output is quantised on
/// the fly if it has a scheme.
pub(super) fn partition_groups<'a>(
    ctx: &Cpu,
    output: Option<QuantScheme>,
    groups: &[RowGroup],
    reads: impl Fn(usize) -> BlockingInput<'a>,
    grids: &mut GridList,
) -> usize {
    let tiles = groups.iter().map(|of| reads(of.group).weight.tiles().len()).sum();
    let single = groups.iter().all(|of| of.rows.len() == 1);
    let mut max_claim = if single { usize::MAX } else { 1 };
    grids.clear();
    for RowGroup { group, rows } in groups {
        let reads = reads(*group);
        // Small tasks only pay where a claim may have many.
        let m = if single { 1 } else { rows.len().max(2) };
        let blocking = Blocking::of(ctx, &reads, m, tiles, unit_of(output));
        if single {
            max_claim = max_claim.min(blocking.max_claim(&reads));
        }
        let grid = blocking.grid(&reads, rows.clone());
        grids.push(if output.is_some() { grid.divided(GROUP) } else { grid });
    }
    max_claim
}

/// The tiles of which tasks are multiples.
pub(super) fn unit_of(output: Option<QuantScheme>) -> usize {
    output.map_or(1, |scheme| scheme.columns() / TILE)
}

/// Rows and tiles of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Blocking {
    pub(super) rows: usize,
    pub(super) tiles: usize,
}

impl Blocking {
    /// Blocking of a matmul of `m` rows in a dispatch of `tiles` tiles. Tasks are runs of whole
    /// tiles: few enough that claims cost little, and enough that no thread waits long for the
    /// last. One row has small tasks, which a thread claims many at first and few at last. Many
    /// rows are divided too, so that a task's activations and results stay in the second-level
    /// cache. A task is a multiple of `unit` tiles.
    pub(super) fn of(
        ctx: &Cpu,
        reads: &BlockingInput<'_>,
        m: usize,
        tiles: usize,
        unit: usize,
    ) -> Blocking {
        let (shape, packed) = (ctx.isa().shape(), reads.weight.packed());
        let cols = packed.cols();
        let of_tile = cols * TILE;
        let of_products = TASK_PRODUCTS.div_ceil(of_tile * m).max(ROW_TILES);
        let fewest = if m == 1 { ROW_WEIGHTS } else { TASK_WEIGHTS };
        let worth = fewest.div_ceil(of_tile).min(of_products);
        let fair = tiles.div_ceil(ctx.pool().threads() * 4);
        let (block_rows, block_tiles, of_x) = match ctx.quant_scheme(packed.dtype()) {
            Some(_) => (shape.rows, shape.tiles, cols / GROUP * size_of::<Q8Block>()),
            None => (shape.float_rows, shape.float_tiles, cols * size_of::<f32>()),
        };
        let multiple = if m > 1 { unit.next_multiple_of(block_tiles) } else { unit };
        let tiles = worth.min(fair).max(1).next_multiple_of(multiple);
        let results = if reads.is_gated { 2 } else { 1 };
        let of_row = of_x + results * tiles * TILE * size_of::<f32>();
        let most = (ctx.caches().l2 / 2 / of_row).max(block_rows);
        let rows = m.div_ceil(m.div_ceil(most)).next_multiple_of(block_rows);
        Blocking { rows, tiles }
    }
    /// The tasks of some rows.
    fn grid(&self, reads: &BlockingInput<'_>, rows: Range<usize>) -> BlockGrid {
        BlockGrid {
            first_row: rows.start,
            rows: rows.len(),
            row_len: reads.weight.len(),
            row_chunk: self.rows,
            col_chunk: self.tiles * TILE,
            lead: reads.weight.range().start % TILE,
        }
    }

    /// Most tasks of a claim of tasks of one row.
    fn max_claim(&self, reads: &BlockingInput<'_>) -> usize {
        let matrices = if reads.is_gated { 2 } else { 1 };
        let of_task = matrices * self.tiles * TILE * reads.weight.packed().cols();
        (CLAIM_WEIGHTS / of_task).max(1)
    }
}
