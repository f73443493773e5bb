//! Dot products of bytes: what instruction sets do differently.
#![expect(unsafe_code, reason = "methods need the instructions of the implementing type")]

use crate::cpu::loops::formats::Format;
use crate::cpu::loops::quantize::Q8Block;
use crate::cpu::packed::group::Group;
use crate::cpu::packed::tile::TileBytes;
use crate::cpu::simd::f32x16::F32x16;

/// Most rows of a block, on any instruction set.
pub(crate) const ROWS_MAX: usize = 4;

/// How an instruction set sums products of bytes.
///
/// # Safety
/// Every method: the machine has the instructions of the implementing type.
pub(crate) trait Int8Dot: Sized {
    /// 16 values of f32.
    type Floats: F32x16;
    /// Sums of 16 features.
    type Sums: Copy;
    /// ActRows of a block, at most [`ROWS_MAX`].
    const ROWS: usize;

    /// Brings the integers of a group into the order that [`Int8Dot::dots`] wants.
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
        x: ActRows,
    ) -> [Self::Sums; R];

    /// Gets group `g` of a tile ready for [`Int8Dot::stored`], where few rows follow.
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

    /// As [`Int8Dot::dots`], of group `g` of a tile, which has been made ready.
    ///
    /// # Safety
    /// As the trait says, and there are R rows.
    ///
    /// # Panics
    /// When the tile has no such group.
    #[inline(always)]
    unsafe fn stored<F: Format, const R: usize, const FROM: usize, const TO: usize>(
        (_, _, ready): (&TileBytes<'_>, usize, &Group),
        x: ActRows,
    ) -> [Self::Sums; R] {
        // SAFETY: by the caller.
        unsafe { Self::dots::<F, R, FROM, TO>(ready, x) }
    }

    /// # Safety
    /// As the trait says.
    unsafe fn floats(sums: Self::Sums) -> Self::Floats;
}

/// The activation blocks of one group, of rows that are some blocks apart.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ActRows {
    pub(crate) first: *const Q8Block,
    /// In bytes, of which an address can be made at once.
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

/// The integers of a group, in the order of [`Int8Dot::dots`].
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
