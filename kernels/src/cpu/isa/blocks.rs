//! Products of quantised weights in blocks of a few rows × 16 features, for instruction sets
//! whose registers are too few or too short for the blocks of AVX-512. They differ in how they
//! sum products of bytes ([`Dots`]); all else is written once.
#![expect(unsafe_code, reason = "calls into code compiled for more features than the crate")]

mod block;
mod weights;

use crate::cpu::isa::TileShape;
use crate::cpu::isa::floats;
use crate::cpu::isa::formats::Format;
use crate::cpu::isa::lanes::Lanes;
use crate::cpu::packed::{Group, TileBytes};
use crate::cpu::tile::{GemmQ8, GemmScratch, Q8Block, TILE};
use block::Block;
use std::ops::Range;
use weights::{Stored, Unpacked, read, unpack};

/// Most rows of a block, on any instruction set.
pub(crate) const ROWS_MAX: usize = 4;

/// How an instruction set sums products of bytes.
///
/// # Safety
/// Every method: the machine has the instructions of the implementing type.
pub(crate) trait Dots: Sized {
    /// 16 values of f32.
    type Floats: Lanes;
    /// Sums of 16 features.
    type Sums: Copy;
    /// Rows of a block, at most [`ROWS_MAX`].
    const ROWS: usize;

    /// Brings the integers of a group into the order that [`Dots::dots`] wants.
    ///
    /// # Safety
    /// As the trait says.
    #[inline(always)]
    unsafe fn arrange<F: Format>(_: &mut Group) {}

    /// `start + Σ q·x` over the quads `FROM .. TO`, which are a whole group or half of one, for R
    /// rows; exact for x within ±127, whatever q is. `start` is [`Q8Block::start`] for formats with an offset,
    /// otherwise 0.
    ///
    /// # Safety
    /// As the trait says, and there are R rows.
    unsafe fn dots<F: Format, const R: usize, const FROM: usize, const TO: usize>(
        group: &Group,
        x: Rows,
    ) -> [Self::Sums; R];

    /// Gets group `g` of a tile ready for [`Dots::stored`], where few rows follow.
    ///
    /// # Safety
    /// As the trait says.
    ///
    /// # Panics
    /// When the tile has no such group.
    #[inline(always)]
    unsafe fn ready<F: Format>(tile: &TileBytes<'_>, g: usize, to: &mut Group) {
        // SAFETY: by the caller.
        unsafe { read::<Self, F>(tile, g, to) }
    }

    /// As [`Dots::dots`], of group `g` of a tile, which has been made ready.
    ///
    /// # Safety
    /// As the trait says, and there are R rows.
    ///
    /// # Panics
    /// When the tile has no such group.
    #[inline(always)]
    unsafe fn stored<F: Format, const R: usize, const FROM: usize, const TO: usize>(
        (_, _, ready): (&TileBytes<'_>, usize, &Group),
        x: Rows,
    ) -> [Self::Sums; R] {
        // SAFETY: by the caller.
        unsafe { Self::dots::<F, R, FROM, TO>(ready, x) }
    }

    /// # Safety
    /// As the trait says.
    unsafe fn floats(sums: Self::Sums) -> Self::Floats;
}

/// The register blocks of these products, and of float weights beside them.
pub(crate) const fn shape<D: Dots>() -> TileShape {
    TileShape {
        direct_rows: D::ROWS,
        rows: D::ROWS,
        tiles: 1,
        panel_group_bytes: size_of::<Group>(),
        float_rows: floats::ROWS,
        float_tiles: 1,
    }
}

/// The activation blocks of one group, of rows that are some blocks apart.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rows {
    first: *const Q8Block,
    /// In bytes, of which an address can be made at once.
    stride: usize,
}

impl Rows {
    /// # Safety
    /// There is a row `r`.
    #[inline(always)]
    pub(crate) unsafe fn block<'a>(self, r: usize) -> &'a Q8Block {
        // SAFETY: by the caller.
        unsafe { &*self.first.byte_add(r * self.stride) }
    }

    /// Four values side by side.
    ///
    /// # Safety
    /// There is a row `r`, and `j` is less than 8.
    #[inline(always)]
    pub(crate) unsafe fn quad(self, r: usize, j: usize) -> i32 {
        // SAFETY: by the caller; a block starts with its values and has 8 quads of them.
        unsafe { self.first.byte_add(r * self.stride).cast::<i32>().add(j).read() }
    }
}

/// All of a job: one block of up to [`Dots::ROWS`] rows unpacks as it goes; more rows share panels
/// that are unpacked once. The sums of earlier panels wait in `out`.
///
/// # Safety
/// The machine has the instructions of `D`, and lengths are as [`GemmQ8::check`] demands.
///
/// # Panics
/// When the weights have another format.
#[inline(always)]
pub(crate) unsafe fn tiles<D: Dots, F: Format>(
    job: &GemmQ8<'_>,
    out: &mut [f32],
    scratch: &mut GemmScratch,
) {
    let layout = job.weight.layout();
    assert!(layout.lines == F::LINES && layout.kind == F::SCALES, "another format");
    let (groups, stride) = (layout.groups(), job.tiles.len() * TILE);
    // BlockGrid of about the same size: one of few rows would wait for its own sums.
    let step = job.rows.div_ceil(job.rows.div_ceil(D::ROWS));
    let ahead = job.prefetch_stream(F::SHARE);
    for (t, tile) in job.tiles.clone().enumerate() {
        let tile = job.weight.tile(tile);
        let block = |row: usize, groups_of: Range<usize>| Block {
            x: job.x[row * groups + groups_of.start..].as_ptr(),
            row_groups: groups,
            is_first: groups_of.start == 0,
            groups: groups_of.len(),
            rows: step.min(job.rows - row),
            stride,
        };
        if job.rows <= D::ROWS {
            let source = Stored::<D, F>::new(tile, ahead);
            // SAFETY: the tile has `groups` groups; `x` has the rows of the block; row r has 16
            // values at `out + r·stride`.
            unsafe { block(0, 0..groups).of::<D, F, _>(source, &mut out[t * TILE..]) };
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
                let source = Unpacked(&scratch.groups);
                // SAFETY: as above; the panel has these groups.
                unsafe { block(row, panel_groups.clone()).of::<D, F, _>(source, out) };
            }
        }
    }
}
