//! Matmuls of quantised weights in blocks of a few rows × 16 output channels, for instruction sets whose
//! registers are too few or too short for the blocks of AVX-512. The dot products of bytes are a type
//! parameter ([`Int8Dot`]); everything else is written once.
#![expect(unsafe_code, reason = "calls into code compiled for more features than the crate")]

mod block;
pub(crate) mod dot;
mod weights;

use crate::cpu::loops::formats::Format;
use crate::cpu::loops::gemm_args::{GemmQ8, GemmScratch};
use crate::cpu::loops::gemm_f32;
use crate::cpu::loops::tile_shape::TileShape;
use crate::cpu::packed::group::Group;
use crate::cpu::packed::layout::TILE;
use block::RowBlock;
use dot::Int8Dot;
use std::ops::Range;
use weights::{StoredGroups, UnpackedGroups, unpack};

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

/// Multiplies quantised tiles. Up to [`Int8Dot::ROWS`] rows form one block that unpacks weights as
/// it reads them; more rows share panels that are unpacked once. Between panels, sums are stored in
/// `out`.
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
    // Blocks of about equal size: a block of few rows has too few independent sums to hide latency.
    let step = job.rows.div_ceil(job.rows.div_ceil(D::ROWS));
    let prefetch = job.prefetch_stream(F::GROUP_BYTES);
    for (t, tile) in job.tiles.clone().enumerate() {
        let tile = job.weight.tile(tile);
        let block = |row: usize, groups_of: Range<usize>| RowBlock {
            x: job.x[row * groups + groups_of.start..].as_ptr(),
            row_groups: groups,
            is_first: groups_of.start == 0,
            groups: groups_of.len(),
            rows: step.min(job.rows - row),
            stride,
        };
        if job.rows <= D::ROWS {
            let source = StoredGroups::<D, F>::new(tile, prefetch);
            // SAFETY: the tile has `groups` groups; `x` has the rows of the block; row r has 16
            // values at `out + r·stride`.
            unsafe { block(0, 0..groups).run::<D, F, _>(source, &mut out[t * TILE..]) };
            continue;
        }
        for from in (0..groups).step_by(job.panel) {
            let panel_groups = from..groups.min(from + job.panel);
            scratch.groups.resize(panel_groups.len(), Group::new());
            for (g, group) in panel_groups.clone().zip(&mut scratch.groups) {
                // SAFETY: by the caller.
                unsafe { unpack::<D, F>(&tile, g, group) };
            }
            for row in (0..job.rows).step_by(step) {
                let out = &mut out[row * stride + t * TILE..];
                let source = UnpackedGroups(&scratch.groups);
                // SAFETY: as above; the panel has these groups.
                unsafe { block(row, panel_groups.clone()).run::<D, F, _>(source, out) };
            }
        }
    }
}
