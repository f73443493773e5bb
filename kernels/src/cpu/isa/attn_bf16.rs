//! Attention's products of pairs: an instruction set may multiply two neighbouring values of the
//! depth at once, both rounded to bfloat16, and sum them in f32.

use crate::cpu::isa::attn_matmul::AttnMatmul;
use crate::cpu::isa::panel::KvConvert;
use crate::kv::Panel;

/// Two neighbours along the depth of a product in bfloat16, the first in the low half. Where a depth
/// is odd, nothing but the first of the last pair is looked at.
pub(crate) type Bf16Pair = u32;

/// Right side of a product of pairs.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(
    not(target_arch = "x86_64"),
    expect(dead_code, reason = "no instruction set of this architecture reads them")
)]
pub(crate) enum PairPanel<'a> {
    /// `[depth / 2][16 · chunks]`.
    Packed(&'a [Bf16Pair]),
    /// `[depth][16 · chunks]`: pairs are made of two rows as they are read.
    Stored(Panel<'a>),
}

/// The inner loops of products of pairs. Values are rounded to nearest bfloat16, ties to even, and
/// below its normal numbers to zero.
#[derive(Debug)]
pub(crate) struct AttnBf16Kernels {
    /// `c = a · b` or `c += a · b`.
    pub(crate) matmul: fn(&AttnMatmul<'_, Bf16Pair, PairPanel<'_>>, &mut [f32]),
    /// Keys or values to pairs: rows 2i and 2i + 1 become row i. What an odd last row lacks is zero.
    pub(crate) pack_kv: fn(&KvConvert<'_>, &mut [Bf16Pair]),
    /// f32 to pairs of neighbours. What an odd last value lacks is zero.
    pub(crate) round: fn(&[f32], &mut [Bf16Pair]),
}
