//! Attention's products of pairs: an instruction set may multiply two neighbouring values of the
//! depth at once, both rounded to bfloat16, and sum them in f32.

use crate::kv::store::panel::Panel;

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
