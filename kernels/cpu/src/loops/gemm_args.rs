//! Arguments of the matmul kernels.

use crate::loops::prefetch_stream::{NextTiles, PrefetchStream};
use crate::loops::quantize::{Q8Block, QuantScheme};
use crate::packed::group::Group;
use crate::packed::layout::TILE;
use crate::packed::matrix::PackedMatrix;
use crate::packed::tile::FloatTiles;
use lapwing_model::aligned::Aligned;
use lapwing_model::formats::Scales;
use std::ops::Range;

/// Rows of quantised activations × a range of quantised tiles.
#[derive(Clone, Debug)]
pub(crate) struct GemmQ8<'a> {
    pub(crate) weight: &'a PackedMatrix,
    pub(crate) tiles: Range<usize>,
    /// `[rows][k/32]`.
    pub(crate) x: &'a [Q8Block],
    pub(crate) rows: usize,
    /// Groups of a panel, which are unpacked at once for many rows: a multiple of 8, or all.
    pub(crate) panel: usize,
    /// Data that the thread will most likely read after these tiles.
    pub(crate) next_tiles: NextTiles<'a>,
}

/// Division of rows into the fewest blocks of at most so many rows, whose sizes differ by 1 at most: a block of few rows has too
/// few independent sums to hide latency.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(
    not(any(test, target_arch = "x86_64", target_arch = "aarch64")),
    expect(dead_code, reason = "plain Rust has no blocks of rows")
)]
pub(crate) struct RowBlocks {
    rows: usize,
    /// Number of blocks.
    pub(crate) count: usize,
}

#[cfg_attr(
    not(any(test, target_arch = "x86_64", target_arch = "aarch64")),
    expect(dead_code, reason = "plain Rust has no blocks of rows")
)]
impl RowBlocks {
    pub(crate) fn new(rows: usize, most: usize) -> RowBlocks {
        RowBlocks { rows, count: rows.div_ceil(most) }
    }

    /// The rows of a block. The first is one of the largest.
    #[inline(always)]
    pub(crate) fn block(self, index: usize) -> Range<usize> {
        let start = |index: usize| (index * self.rows).div_ceil(self.count);
        start(index)..start(index + 1)
    }

    /// The rows of each block.
    #[cfg_attr(
        not(any(test, target_arch = "x86_64")),
        expect(dead_code, reason = "AVX-512 takes all blocks in turn")
    )]
    pub(crate) fn all(self) -> impl Iterator<Item = Range<usize>> {
        (0..self.count).map(move |index| self.block(index))
    }
}

/// Rows of f32 activations × float tiles.
#[derive(Clone, Debug)]
pub(crate) struct GemmF32<'a> {
    pub(crate) tiles: FloatTiles<'a>,
    /// `[rows][k]`.
    pub(crate) x: &'a [f32],
    pub(crate) rows: usize,
    /// Values from one row of the output to the next: a multiple of 16, at least 16 per tile.
    pub(crate) stride: usize,
    /// As in [`GemmQ8`].
    pub(crate) next_tiles: NextTiles<'a>,
}

impl GemmQ8<'_> {
    /// The prefetch stream for these tiles (at least one), which are read `step` bytes at a time.
    #[cfg_attr(
        not(any(target_arch = "x86_64", target_arch = "aarch64")),
        expect(dead_code, reason = "plain Rust does not prefetch")
    )]
    pub(crate) fn prefetch_stream(&self, step: usize) -> PrefetchStream {
        let last = self.weight.tile(self.tiles.end + self.next_tiles.rest - 1);
        PrefetchStream::new(last.scales.as_ptr_range().end, &self.next_tiles, step)
    }

    /// Checks every length that a kernel's pointer arithmetic relies on: `x` has `rows` rows of
    /// k/32 blocks, and `out` is `[rows][16 per tile]`. [`PackedMatrix::tile`] checks that the
    /// tiles exist.
    ///
    /// # Panics
    /// When a length is wrong.
    pub(crate) fn check(&self, out: &[f32]) {
        assert!(self.weight.layout().kind != Scales::None, "float weights");
        assert_eq!(self.x.len(), self.rows * self.weight.layout().groups(), "activations");
        assert_eq!(out.len(), self.rows * self.tiles.len() * TILE, "out");
        let is_whole = self.panel >= self.weight.layout().groups();
        assert!(self.panel > 0, "an empty panel");
        assert!(is_whole || self.panel.is_multiple_of(8), "a panel of {}", self.panel);
    }
}

impl GemmF32<'_> {
    /// As [`GemmQ8::prefetch_stream`].
    #[cfg_attr(
        not(any(target_arch = "x86_64", target_arch = "aarch64")),
        expect(dead_code, reason = "plain Rust does not prefetch")
    )]
    pub(crate) fn prefetch_stream(&self, step: usize) -> PrefetchStream {
        let rest = self.next_tiles.rest * self.tiles.stride;
        PrefetchStream::new(
            self.tiles.bytes.as_ptr_range().end.wrapping_add(rest),
            &self.next_tiles,
            step,
        )
    }

    /// As [`GemmQ8::check`]; `x` is `[rows][k]`, and rows of `out` are `stride` apart.
    ///
    /// # Panics
    /// When a length is wrong.
    pub(crate) fn check(&self, out: &[f32]) {
        assert!(QuantScheme::of_format(self.tiles.dtype).is_none(), "quantised weights");
        assert_eq!(self.x.len(), self.rows * self.tiles.cols, "activations");
        let (stride, width) = (self.stride, self.tiles.count * TILE);
        assert!(stride >= width && stride.is_multiple_of(TILE), "rows {stride} values apart");
        let len = self.rows.checked_sub(1).map_or(0, |before| before * stride + width);
        assert!(out.len() >= len, "out");
    }
}

/// Unpacked panels and partial sums of a thread, reused between calls.
#[derive(Debug, Default)]
pub(crate) struct GemmScratch {
    /// Panel of two tiles.
    #[cfg_attr(not(target_arch = "x86_64"), expect(dead_code, reason = "AVX-512 unpacks here"))]
    pub(crate) pairs: Vec<TilePairGroup>,
    /// Minimums of the halves of each of its groups, in formats that have them.
    #[cfg_attr(not(target_arch = "x86_64"), expect(dead_code, reason = "AVX-512 unpacks here"))]
    pub(crate) half_minimums: Vec<HalfMinimums>,
    /// Panel of one tile.
    #[cfg_attr(
        not(any(target_arch = "x86_64", target_arch = "aarch64")),
        expect(dead_code, reason = "vectors of 256 or 128 bits unpack here")
    )]
    pub(crate) groups: Vec<Group>,
    pub(crate) partial: Vec<[f32; TILE]>,
    /// Tiles dequantised to f32.
    pub(crate) widened: Aligned<u8>,
}

/// Minimums of both halves of a group, of two tiles each.
pub(crate) type HalfMinimums = [[[f32; TILE]; 2]; 2];

/// One group of two tiles, unpacked.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub(crate) struct TilePairGroup {
    /// `[8 quads][2 tiles][16 channels][4 columns]`.
    pub(crate) q: [[[u8; 64]; 2]; 8],
    /// Scales of each tile.
    pub(crate) scale: [[f32; TILE]; 2],
    /// The minimums of each tile, or the scales of the second half group.
    pub(crate) second: [[f32; TILE]; 2],
}

#[cfg(test)]
mod tests {
    use super::RowBlocks;

    #[test]
    fn blocks_of_rows_have_almost_the_same_size() {
        for (rows, most) in (1..100).flat_map(|rows| (1..9).map(move |most| (rows, most))) {
            let all: Vec<_> = RowBlocks::new(rows, most).all().collect();
            assert_eq!(all.len(), rows.div_ceil(most));
            assert!(all.iter().flat_map(|block| block.clone()).eq(0..rows), "{all:?}");
            let sizes = all.iter().map(ExactSizeIterator::len);
            let (least, largest) = (sizes.clone().min(), sizes.max());
            assert!(largest == all.first().map(ExactSizeIterator::len), "{all:?}");
            assert!(largest <= Some(most) && largest <= least.map(|least| least + 1), "{all:?}");
        }
    }
}
