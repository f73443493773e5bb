//! Operands of attention matmuls in bfloat16: some instruction sets multiply two neighbours along
//! the depth at once and sum the products in f32.

use lapwing_model::kv::Panel;

/// Two bfloat16 neighbours along the depth of a matmul, the first in the low half. If the depth is
/// odd, only the first half of the last pair is used.
pub(crate) type Bf16Pair = u32;

/// Right operand of a bfloat16 matmul.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(
    not(target_arch = "x86_64"),
    expect(dead_code, reason = "no instruction set of this architecture reads them")
)]
pub(crate) enum PairPanel<'a> {
    /// Pairs, `[depth / 2][16 · chunks]`.
    Packed(&'a [Bf16Pair]),
    /// Keys or values as stored, `[depth][16 · chunks]`: two rows are paired as they are read.
    Stored(Panel<'a>),
}
