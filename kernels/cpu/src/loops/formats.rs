//! The packed form of the quantised formats, which kernels are compiled for.

use crate::loops::prefetch_stream::PrefetchStream;
use crate::loops::quantize::Q8Block;
use crate::packed::layout::{LINE, scale_bytes};
use crate::simd::prefetch::prefetch_range;
use lapwing_model::formats::Quantised;

/// Properties of a packed format.
pub(crate) trait Format: Quantised {
    /// Lines of 64 bytes per group: one for each bit of an integer.
    const LINES: usize = Self::BITS;
    /// Whether integers take a byte: those of 8 bits, and values of a table. They are 128 above the values.
    const IS_WIDE: bool = Self::BITS == 8 || Self::TABLE.is_some();
    /// Whether the integers have a zero point, which the sums' initial value
    /// [`Q8Block::start`](crate::loops::quantize::Q8Block::start) subtracts.
    const HAS_ZERO_POINT: bool = Self::ZERO_POINT != 0;
    /// Groups of activations that share a scale.
    const GROUPS: usize = Self::SCALES.groups();
    /// Bytes of a record of scales, which is that of [`GROUPS`](Format::GROUPS) groups.
    const SCALE_BYTES: usize = scale_bytes(Self::SCALES);
    /// Bytes of a tile per group, including its part of the scales.
    const GROUP_BYTES: usize = Self::LINES * LINE + Self::SCALE_BYTES / Self::GROUPS;
    /// Whether half groups have their own scales.
    const HALVES: bool = Self::SCALES.has_halves();
    /// Whether the format has minimums.
    const MIN: bool = Self::SCALES.has_minimum();

    /// The initial value of the integer sum from quad `from` on, of the whole group or of a half.
    #[inline(always)]
    fn start(block: &Q8Block, from: usize) -> i32 {
        match Self::HAS_ZERO_POINT {
            // Blocks of 256, and those for weights with scales of halves, have a value for each half.
            true if Self::GROUPS > 1 && !Self::HALVES => block.start[0] + block.start[1],
            true => block.start[from / 4],
            false => 0,
        }
    }
}

impl<F: Quantised> Format for F {}

/// Prefetches as many cache lines as group `g` of a tile spans, rounded up: a line shared by two
/// groups is prefetched twice, which costs less than a check.
#[inline(always)]
pub(crate) fn prefetch_group<F: Format>(prefetch: PrefetchStream, tile: *const u8, g: usize) {
    prefetch_range(
        prefetch.address::<1>(tile, g * F::GROUP_BYTES, 0),
        0..F::GROUP_BYTES,
        prefetch.prefetch_hint,
    );
}
