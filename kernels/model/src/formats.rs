//! Formats of weights.
//!
//! A format is one file: the layout of its blocks, how they are unpacked and quantised, its properties, its names, and its
//! naive reference. The table below names each once. Packing, matmuls and devices follow from the properties of a format's type:
//! how many bits an integer has, how scales are stored, the zero point, and the table of values if the integers are codes.

use std::fmt;

pub mod bfloat16;
pub mod block;
mod dtype;
pub mod float16;
pub mod float32;
mod grids;
mod info;
pub mod iq1_m;
pub mod iq1_s;
pub mod iq2_s;
pub mod iq2_xs;
pub mod iq2_xxs;
pub mod iq3_s;
pub mod iq3_xxs;
pub mod iq4_nl;
pub mod iq4_xs;
pub mod mxfp4;
mod naive;
pub mod nvfp4;
mod places;
pub mod q1_0;
pub mod q2_0;
pub mod q2_k;
pub mod q3_k;
pub mod q4_0;
pub mod q4_1;
pub mod q4_k;
pub mod q5_0;
pub mod q5_1;
pub mod q5_k;
pub mod q6_k;
pub mod q8_0;
mod storable;
pub mod tq1_0;
pub mod tq2_0;

pub use block::{Block, BlockScales, Integers, Scales};
pub use info::{FormatInfo, FormatKind, QuantisedInfo, unsigned};
pub use places::Places;
pub use storable::Storable;

/// A format of floats of `N` bytes.
pub trait Float<const N: usize> {
    /// Name of the format in GGUF files.
    const NAME: &'static str;
    /// Number of the format in GGUF files (`ggml_type`).
    const GGUF_ID: u32;

    /// A stored value.
    fn value(stored: [u8; N]) -> f32;

    /// A stored value, by the reference.
    fn naive(stored: [u8; N]) -> f32;

    /// The nearest value as it is stored.
    fn store(x: f32) -> [u8; N];
}

/// How activations are quantised that meet the weights of a format in a matmul, as llama.cpp does it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActivationBlocks {
    /// ggml's Q8_0: blocks of 32.
    Q8_0,
    /// ggml's Q8_1: blocks of 32 with their sum.
    Q8_1,
    /// ggml's Q8_K: blocks of 256.
    Q8K,
}

/// A format of blocks: `value = scale · (integer − zero point) + minimum`.
pub trait Quantised: Copy + fmt::Debug + 'static {
    /// Name of the format in GGUF files.
    const NAME: &'static str;
    /// Number of the format in GGUF files (`ggml_type`).
    const GGUF_ID: u32;
    /// Values of a block.
    const LEN: usize;
    /// Bytes of a stored block.
    const BYTES: usize;
    /// Bits of an integer: 2, 3, 4, 5, 6 or 8.
    const BITS: usize;
    /// Where the integers are codes of 3 or 4 bits: the values that they stand for.
    const TABLE: Option<&'static [i8; 16]> = None;
    /// How scales are stored.
    const SCALES: Scales;
    /// What the stored scale of a block is multiplied by, a power of two. Only scales of the kinds `Signed` and `Halves` have
    /// another one than 1.
    const UNIT: f32 = 1.0;
    /// A stored block of zeros, where the scales of a block whose bytes are all zero are not zero, but subnormal.
    const ZEROS: Option<&'static [u8]> = None;
    /// How far the unsigned integers are above their values; 0 for formats with minimums. Values of a table become unsigned by
    /// 128.
    const ZERO_POINT: i32 = if Self::TABLE.is_some() { 128 } else { 0 };
    /// How activations are quantised.
    const ACTIVATIONS: ActivationBlocks;
    /// Where the integers are in a stored block.
    const PLACES: Places;

    /// The integers, or the codes, of a stored block, which has [`BYTES`](Quantised::BYTES) bytes.
    fn integers(stored: &[u8], q: &mut Integers);

    /// The scales of a stored block.
    fn scales(stored: &[u8]) -> BlockScales;

    /// Value `i` of a stored block, by the reference.
    fn value(stored: &[u8], i: usize) -> f32;

    /// Quantises a block of values by the simplest rule: scales from its extremes, values rounded to the nearest step.
    fn quantize(x: &[f32]) -> Vec<u8>;
}

/// Makes [`DType`] of the table of formats.
macro_rules! formats {
    (
        floats { $($(#[$of_float:meta])* $float:ident = $float_type:ty, $bytes:literal bytes;)* }
        blocks { $($(#[$of_blocks:meta])* $blocks:ident = $blocks_type:ty;)* }
    ) => {
        /// Storage format of a weight tensor, numbered as in the GGUF specification.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum DType {
            $($(#[$of_float])* $float,)*
            $($(#[$of_blocks])* $blocks,)*
        }

        impl DType {
            /// Every supported format.
            pub const ALL: [DType; [$(DType::$float,)* $(DType::$blocks),*].len()] =
                [$(DType::$float,)* $(DType::$blocks),*];

            /// What is known of the format.
            pub fn info(self) -> &'static FormatInfo {
                match self {
                    $(DType::$float => {
                        const { &FormatInfo::of_floats::<$bytes, $float_type>() }
                    })*
                    $(DType::$blocks => const { &FormatInfo::of_blocks::<$blocks_type>() },)*
                }
            }
        }
    };
}

formats! {
    floats {
        /// IEEE 754 binary32.
        F32 = float32::F32, 4 bytes;
        /// IEEE 754 binary16.
        F16 = float16::F16, 2 bytes;
        /// bfloat16.
        Bf16 = bfloat16::Bf16, 2 bytes;
    }
    blocks {
        /// 4-bit, block of 32: f16 scale; value = d·(q − 8).
        Q4_0 = q4_0::Q4_0;
        /// 4-bit, block of 32: f16 scale and minimum; value = d·q + m.
        Q4_1 = q4_1::Q4_1;
        /// 5-bit, block of 32: f16 scale; value = d·(q − 16).
        Q5_0 = q5_0::Q5_0;
        /// 5-bit, block of 32: f16 scale and minimum; value = d·q + m.
        Q5_1 = q5_1::Q5_1;
        /// 8-bit, block of 32: f16 scale; value = d·q.
        Q8_0 = q8_0::Q8_0;
        /// 4-bit, super-block of 256 = 8 × 32: 6-bit scales and minimums over two f16.
        Q4K = q4_k::Q4K;
        /// 5-bit, super-block of 256 = 8 × 32: 6-bit scales and minimums over two f16.
        Q5K = q5_k::Q5K;
        /// 6-bit, super-block of 256 = 16 × 16: 8-bit scales over one f16.
        Q6K = q6_k::Q6K;
        /// 2-bit, super-block of 256 = 16 × 16: 4-bit scales and minimums over two f16.
        Q2K = q2_k::Q2K;
        /// 3-bit, super-block of 256 = 16 × 16: 6-bit scales over one f16.
        Q3K = q3_k::Q3K;
        /// 4-bit codes of a table of 16 values, block of 32: f16 scale.
        Iq4Nl = iq4_nl::Iq4Nl;
        /// 4-bit codes of a table of 16 values, super-block of 256 = 8 × 32: 6-bit scales over one f16.
        Iq4Xs = iq4_xs::Iq4Xs;
        /// 4-bit floats, block of 32: a power of two as scale.
        Mxfp4 = mxfp4::Mxfp4;
        /// 2-bit, block of 256: f16 scale; value = d·(q − 1).
        Tq2_0 = tq2_0::Tq2_0;
        /// 3-bit, super-block of 256 = 8 × 32: runs of 4 values of a grid, 4-bit scales over one f16.
        Iq3S = iq3_s::Iq3S;
        /// 3-bit, super-block of 256 = 8 × 32: runs of 4 values of a grid, 4-bit scales over one f16.
        Iq3Xxs = iq3_xxs::Iq3Xxs;
        /// 2-bit, super-block of 256 = 16 × 16: runs of 8 values of a grid, 4-bit scales over one f16.
        Iq2S = iq2_s::Iq2S;
        /// 2-bit, super-block of 256 = 16 × 16: runs of 8 values of a grid, 4-bit scales over one f16.
        Iq2Xs = iq2_xs::Iq2Xs;
        /// 2-bit, super-block of 256 = 8 × 32: runs of 8 values of a grid, 4-bit scales over one f16.
        Iq2Xxs = iq2_xxs::Iq2Xxs;
        /// 1-bit, super-block of 256 = 8 × 32: runs of 8 values of a grid, 3-bit scales over one f16.
        Iq1S = iq1_s::Iq1S;
        /// 1-bit, super-block of 256 = 16 × 16: runs of 8 values of a grid, 3-bit scales over one f16.
        Iq1M = iq1_m::Iq1M;
        /// Digits of base 3, block of 256: f16 scale; value = d·(q − 1).
        Tq1_0 = tq1_0::Tq1_0;
        /// 1-bit, block of 128: f16 scale; value = ±d.
        Q1_0 = q1_0::Q1_0;
        /// 2-bit, block of 64: f16 scale; value = d·(q − 1).
        Q2_0 = q2_0::Q2_0;
        /// 4-bit floats, block of 64 = 4 × 16: floats of 8 bits as scales.
        Nvfp4 = nvfp4::Nvfp4;
    }
}

/// Calls a function for the type of a quantised [`DType`]; does nothing for floats.
#[macro_export]
macro_rules! with_format {
    ($dtype:expr, $($function:ident)::+($($arg:expr),*)) => {{
        use $crate::formats::{self, DType};
        match $dtype {
            DType::Q4_0 => $($function)::+::<formats::q4_0::Q4_0>($($arg),*),
            DType::Q4_1 => $($function)::+::<formats::q4_1::Q4_1>($($arg),*),
            DType::Q5_0 => $($function)::+::<formats::q5_0::Q5_0>($($arg),*),
            DType::Q5_1 => $($function)::+::<formats::q5_1::Q5_1>($($arg),*),
            DType::Q8_0 => $($function)::+::<formats::q8_0::Q8_0>($($arg),*),
            DType::Q4K => $($function)::+::<formats::q4_k::Q4K>($($arg),*),
            DType::Q5K => $($function)::+::<formats::q5_k::Q5K>($($arg),*),
            DType::Q6K => $($function)::+::<formats::q6_k::Q6K>($($arg),*),
            DType::Q2K => $($function)::+::<formats::q2_k::Q2K>($($arg),*),
            DType::Q3K => $($function)::+::<formats::q3_k::Q3K>($($arg),*),
            DType::Iq4Nl => $($function)::+::<formats::iq4_nl::Iq4Nl>($($arg),*),
            DType::Iq4Xs => $($function)::+::<formats::iq4_xs::Iq4Xs>($($arg),*),
            DType::Mxfp4 => $($function)::+::<formats::mxfp4::Mxfp4>($($arg),*),
            DType::Tq2_0 => $($function)::+::<formats::tq2_0::Tq2_0>($($arg),*),
            DType::Iq3S => $($function)::+::<formats::iq3_s::Iq3S>($($arg),*),
            DType::Iq3Xxs => $($function)::+::<formats::iq3_xxs::Iq3Xxs>($($arg),*),
            DType::Iq2S => $($function)::+::<formats::iq2_s::Iq2S>($($arg),*),
            DType::Iq2Xs => $($function)::+::<formats::iq2_xs::Iq2Xs>($($arg),*),
            DType::Iq2Xxs => $($function)::+::<formats::iq2_xxs::Iq2Xxs>($($arg),*),
            DType::Iq1S => $($function)::+::<formats::iq1_s::Iq1S>($($arg),*),
            DType::Iq1M => $($function)::+::<formats::iq1_m::Iq1M>($($arg),*),
            DType::Tq1_0 => $($function)::+::<formats::tq1_0::Tq1_0>($($arg),*),
            DType::Q1_0 => $($function)::+::<formats::q1_0::Q1_0>($($arg),*),
            DType::Q2_0 => $($function)::+::<formats::q2_0::Q2_0>($($arg),*),
            DType::Nvfp4 => $($function)::+::<formats::nvfp4::Nvfp4>($($arg),*),
            DType::F32 | DType::F16 | DType::Bf16 => {}
        }
    }};
}
pub use with_format;
