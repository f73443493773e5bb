//! Dot products of bytes: the part of a quantised matmul that differs between instruction sets.
#![expect(unsafe_code, reason = "methods need the instructions of the implementing type")]

use crate::loops::formats::Format;
use crate::loops::quantize::Q8Block;
use crate::packed::group::Group;
use crate::packed::tile::TileBytes;
use crate::simd::f32x16::F32x16;
use crate::simd::outline::Outlined;

/// Most rows of a block, on any instruction set.
pub(crate) const ROWS_MAX: usize = 4;

/// Dot products of unsigned weights and signed activations, in bytes.
///
/// # Safety
/// Every method: the machine has the instructions of the implementing type.
pub(crate) trait Int8Dot: Sized {
    /// A vector of 16 f32.
    type Floats: F32x16;
    /// Integer sums of 16 channels.
    type Sums: Copy;
    /// Rows of a register block, at most [`ROWS_MAX`].
    const ROWS: usize;

    /// Runs code in a function of its own, compiled for the instructions of this type.
    ///
    /// # Safety
    /// As the trait says, and as the code demands.
    #[inline(always)]
    unsafe fn outline<O: Outlined>(code: O) {
        // SAFETY: by the caller.
        unsafe { Self::Floats::outline(code) }
    }

    /// Reorders the integers of a group for [`Int8Dot::dot`].
    ///
    /// # Safety
    /// As the trait says.
    #[inline(always)]
    unsafe fn arrange<F: Format>(_: &mut Group) {}

    /// `start + Σ q·x` over the quads `FROM .. TO` (a whole group or half of one), for R rows;
    /// exact for x within ±127 and any q. `start` is [`Q8Block::start`] for formats with a zero
    /// point, otherwise 0.
    ///
    /// # Safety
    /// As the trait says, and there are R rows.
    unsafe fn dot<F: Format, const R: usize, const FROM: usize, const TO: usize>(
        group: &Group,
        x: ActRows,
    ) -> [Self::Sums; R];

    /// Prepares group `g` of a tile for [`Int8Dot::dot_stored`], for few rows.
    ///
    /// # Safety
    /// As the trait says.
    ///
    /// # Panics
    /// When the tile has no such group.
    #[inline(always)]
    unsafe fn prepare<F: Format>(tile: &TileBytes<'_>, g: usize, to: &mut Group) {
        // SAFETY: by the caller.
        unsafe { read::<Self, F>(tile, g, to) }
    }

    /// As [`Int8Dot::dot`], for group `g` of a tile after [`Int8Dot::prepare`].
    ///
    /// # Safety
    /// As the trait says, and there are R rows.
    ///
    /// # Panics
    /// When the tile has no such group.
    #[inline(always)]
    unsafe fn dot_stored<F: Format, const R: usize, const FROM: usize, const TO: usize>(
        _: &TileBytes<'_>,
        _: usize,
        ready: &Group,
        x: ActRows,
    ) -> [Self::Sums; R] {
        // SAFETY: by the caller.
        unsafe { Self::dot::<F, R, FROM, TO>(ready, x) }
    }

    /// Unpacks group `g` of a tile to `to` for [`Int8Dot::dot`], as far as [`Int8Dot::dot_kept`] does
    /// not do it.
    ///
    /// # Safety
    /// As the trait says.
    ///
    /// # Panics
    /// When the tile has no such group.
    #[inline(always)]
    unsafe fn prepare_kept<F: Format>(tile: &TileBytes<'_>, g: usize, to: &mut Group) {
        // SAFETY: by the caller.
        unsafe { read::<Self, F>(tile, g, to) }
    }

    /// As [`Int8Dot::dot`], for group `g` of a tile after [`Int8Dot::prepare_kept`]; leaves the
    /// integers of these quads in `to`, as [`Int8Dot::dot`] takes them.
    ///
    /// # Safety
    /// As the trait says, there are R rows, and nothing else uses `to`.
    ///
    /// # Panics
    /// When the tile has no such group.
    #[inline(always)]
    unsafe fn dot_kept<F: Format, const R: usize, const FROM: usize, const TO: usize>(
        _: &TileBytes<'_>,
        _: usize,
        to: *mut Group,
        x: ActRows,
    ) -> [Self::Sums; R] {
        // SAFETY: by the caller.
        unsafe { Self::dot::<F, R, FROM, TO>(&*to, x) }
    }

    /// Converts the sums to f32.
    ///
    /// # Safety
    /// As the trait says.
    unsafe fn floats(sums: Self::Sums) -> Self::Floats;
}

/// The activation blocks of one group, one for each row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ActRows {
    pub(crate) first: *const Q8Block,
    /// Distance of rows in bytes, so that one addition makes an address.
    pub(crate) stride: usize,
}

impl ActRows {
    /// # Safety
    /// There is a row `r`.
    #[inline(always)]
    pub(crate) unsafe fn block<'a>(self, r: usize) -> &'a Q8Block {
        // SAFETY: by the caller.
        unsafe { &*self.first.byte_add(r * self.stride) }
    }

    /// Four consecutive values, as one 32-bit integer.
    ///
    /// # Safety
    /// There is a row `r`, and `j` is less than 8.
    #[inline(always)]
    pub(crate) unsafe fn quad(self, r: usize, j: usize) -> i32 {
        // SAFETY: by the caller; a block starts with its values and has 8 quads of them.
        unsafe { self.first.byte_add(r * self.stride).cast::<i32>().add(j).read() }
    }
}

/// Unpacks the integers of a group, in the order of [`Int8Dot::dot`].
///
/// # Safety
/// As [`Int8Dot`] says.
///
/// # Panics
/// When the tile has no such group.
#[inline(always)]
pub(crate) unsafe fn read<D: Int8Dot, F: Format>(tile: &TileBytes<'_>, g: usize, to: &mut Group) {
    to.read_values(tile, g);
    // SAFETY: by the caller.
    unsafe { D::arrange::<F>(to) };
}
