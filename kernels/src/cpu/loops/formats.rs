//! The quantised formats as types, for which kernels are compiled.

use crate::cpu::loops::prefetch_stream::PrefetchStream;
use crate::cpu::packed::layout::{LINE, Scales};
use crate::cpu::simd::prefetch::prefetch_range;

/// What is different about a packed format; the functions are compiled for each.
pub(crate) trait Format: Copy {
    /// Lines of 64 bytes per group.
    const LINES: usize;
    /// How scales are stored.
    const SCALES: Scales;
    /// Whether integer sums start with the activations' `start`.
    const OFFSET: bool;
    /// Groups that have a scale of the activations together.
    const GROUPS: usize = Self::SCALES.groups();
    /// Bytes of a tile per group, with its part of the scales.
    const SHARE: usize = Self::LINES * LINE + Self::SCALES.bytes() / Self::SCALES.groups();
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
            const OFFSET: bool = $offset;
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

/// Asks for as many lines as group `g` of a tile is long, rounded up: to find out that a line of two
/// groups was asked for before would cost more.
#[inline(always)]
pub(crate) fn prefetch_group<F: Format>(ahead: PrefetchStream, tile: *const u8, g: usize) {
    prefetch_range(ahead.of::<1>(tile, (g * F::SHARE, 0)), 0..F::SHARE, ahead.prefetch_hint);
}

/// Calls a function for the format of a [`DType`](crate::quant::DType); none for floats.
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
