//! The quantised formats as types, which kernels are compiled for.

use crate::cpu::loops::prefetch_stream::PrefetchStream;
use crate::cpu::packed::layout::{LINE, Scales};
use crate::cpu::simd::prefetch::prefetch_range;

/// Properties of a packed format.
pub(crate) trait Format: Copy {
    /// Lines of 64 bytes per group.
    const LINES: usize;
    /// How scales are stored.
    const SCALES: Scales;
    /// Whether the integers have a zero point, which the sums' initial value
    /// [`Q8Block::start`](crate::cpu::loops::quantize::Q8Block::start) subtracts.
    const HAS_ZERO_POINT: bool;
    /// Groups of activations that share a scale.
    const GROUPS: usize = Self::SCALES.groups();
    /// Bytes of a tile per group, including its part of the scales.
    const GROUP_BYTES: usize = Self::LINES * LINE + Self::SCALES.bytes() / Self::SCALES.groups();
    /// Whether half groups have their own scales.
    const HALVES: bool = matches!(Self::SCALES, Scales::Halves);
    /// Whether the format has minimums.
    const MIN: bool = matches!(Self::SCALES, Scales::Minimum | Scales::Super);
}

macro_rules! formats {
    ($($name:ident = $lines:literal, $scales:ident, $offset:literal;)*) => {$(
        #[doc = concat!("The format ", stringify!($name), ".")]
        #[derive(Clone, Copy, Debug)]
        pub(crate) struct $name;
        impl Format for $name {
            const LINES: usize = $lines;
            const SCALES: Scales = Scales::$scales;
            const HAS_ZERO_POINT: bool = $offset;
        }
    )*};
}

formats! {
    Q4_0 = 4, Plain, true;
    Q4_1 = 4, Minimum, false;
    Q5_0 = 5, Plain, true;
    Q5_1 = 5, Minimum, false;
    Q8_0 = 8, Plain, true;
    Q4K = 4, Super, false;
    Q5K = 5, Super, false;
    Q6K = 6, Halves, true;
}

/// Prefetches as many cache lines as group `g` of a tile spans, rounded up: a line shared by two
/// groups is prefetched twice, which costs less than a check.
#[inline(always)]
pub(crate) fn prefetch_group<F: Format>(prefetch: PrefetchStream, tile: *const u8, g: usize) {
    prefetch_range(
        prefetch.address::<1>(tile, (g * F::GROUP_BYTES, 0)),
        0..F::GROUP_BYTES,
        prefetch.prefetch_hint,
    );
}

/// Calls a function for the format of a [`DType`](crate::quant::DType); does nothing for float
/// formats.
macro_rules! with_format {
    ($dtype:expr, $($function:ident)::+($($arg:expr),*)) => {{
        use crate::cpu::loops::formats as types;
        use crate::quant::DType;
        match $dtype {
            DType::Q4_0 => $($function)::+::<types::Q4_0>($($arg),*),
            DType::Q4_1 => $($function)::+::<types::Q4_1>($($arg),*),
            DType::Q5_0 => $($function)::+::<types::Q5_0>($($arg),*),
            DType::Q5_1 => $($function)::+::<types::Q5_1>($($arg),*),
            DType::Q8_0 => $($function)::+::<types::Q8_0>($($arg),*),
            DType::Q4K => $($function)::+::<types::Q4K>($($arg),*),
            DType::Q5K => $($function)::+::<types::Q5K>($($arg),*),
            DType::Q6K => $($function)::+::<types::Q6K>($($arg),*),
            DType::F32 | DType::F16 | DType::Bf16 => {}
        }
    }};
}
pub(crate) use with_format;
