//! Matmuls of quantised weights in blocks of a few rows × 16 output channels, for instruction sets whose
//! registers are too few or too short for the blocks of AVX-512. The dot products of bytes are a type
//! parameter ([`Int8Dot`]); everything else is written once.
#![expect(unsafe_code, reason = "calls into code compiled for more features than the crate")]

mod block;
pub(crate) mod dot;
mod weights;

use crate::loops::formats::Format;
use crate::loops::gemm_args::{GemmQ8, GemmScratch, RowBlocks};
use crate::loops::gemm_f32;
use crate::loops::tile_shape::TileShape;
use crate::packed::group::Group;
use crate::packed::layout::{SUPER_GROUPS, TILE};
use block::{PrefetchTurns, RowBlock};
use dot::Int8Dot;
use std::ops::Range;
use weights::{KeptGroups, StoredGroups, UnpackedGroups};

/// The register blocks of these kernels and of [`gemm_f32`].
pub(crate) const fn tile_shape<D: Int8Dot>() -> TileShape {
    TileShape {
        direct_rows: D::ROWS,
        rows: D::ROWS,
        tiles: 1,
        panel_group_bytes: size_of::<Group>(),
        float_rows: gemm_f32::ROWS,
        float_tiles: 1,
    }
}

/// Most rows that are multiplied with a super-block of 8 groups at a time, which the first block of
/// rows unpacks while memory delivers the next ones. More rows are bound by arithmetic: their panels
/// are larger, so that sums leave the registers less often.
const STREAMED_ROWS: usize = 32;

/// Multiplies quantised tiles. Rows that fit a register block unpack weights as they read them; of
/// more rows, the first block keeps what it unpacks in a panel for the others. Between panels, sums
/// are stored in `out`.
///
/// # Safety
/// The machine has the instructions of `D`, and lengths are as [`GemmQ8::check`] demands.
///
/// # Panics
/// When the weights have another format.
#[inline(always)]
pub(crate) unsafe fn gemm_q8<D: Int8Dot, F: Format>(
    job: &GemmQ8<'_>,
    out: &mut [f32],
    scratch: &mut GemmScratch,
) {
    let layout = job.weight.layout();
    assert!(layout.lines == F::LINES && layout.kind == F::SCALES, "another format");
    let (groups, stride) = (layout.groups(), job.tiles.len() * TILE);
    let row_blocks = RowBlocks::new(job.rows, D::ROWS);
    let blocks = row_blocks.count;
    let panel = if job.rows <= STREAMED_ROWS { SUPER_GROUPS } else { job.panel };
    let stream = job.prefetch_stream(F::GROUP_BYTES);
    for (t, tile) in job.tiles.clone().enumerate() {
        let tile = job.weight.tile(tile);
        let block = |index: usize, groups_of: Range<usize>| RowBlock {
            x: job.x[row_blocks.block(index).start * groups + groups_of.start..].as_ptr(),
            row_groups: groups,
            is_first: groups_of.start == 0,
            groups: groups_of.len(),
            rows: row_blocks.block(index).len(),
            stride,
            prefetch: PrefetchTurns {
                stream,
                from: tile.values.as_ptr().wrapping_add(groups_of.start * F::GROUP_BYTES),
                first: index,
                every: blocks,
            },
        };
        if blocks == 1 {
            let source = StoredGroups::<D, F>::new(tile);
            // SAFETY: the tile has `groups` groups; `x` has the rows of the block; row r has 16
            // values at `out + r·stride`.
            unsafe { block(0, 0..groups).run::<D, F, _>(source, &mut out[t * TILE..]) };
            continue;
        }
        for from in (0..groups).step_by(panel) {
            let panel_groups = from..groups.min(from + panel);
            scratch.groups.resize(panel_groups.len(), Group::new());
            let source = KeptGroups::<D, F>::new(tile, from, &mut scratch.groups);
            // SAFETY: as above; the panel has as many groups.
            unsafe {
                block(0, panel_groups.clone()).run::<D, F, _>(source, &mut out[t * TILE..]);
            }
            for index in 1..blocks {
                let out = &mut out[row_blocks.block(index).start * stride + t * TILE..];
                let source = UnpackedGroups(&scratch.groups);
                // SAFETY: as above; the first block has unpacked the panel.
                unsafe { block(index, panel_groups.clone()).run::<D, F, _>(source, out) };
            }
        }
    }
}
