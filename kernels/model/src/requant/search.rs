//! Quantises blocks with the scales for which the sum of squared errors is least, as far as a search finds them.
//!
//! The scales of groups are found one by one: integers are the nearest ones for some scales around that of the extremes; for each,
//! the best scale for these integers follows; and so on, as long as errors become less. Where scales of groups are factors of that of a
//! block, the factors are those next to the ratio with the least error, and the scale of the block is the best for these factors and
//! integers, in turn.

mod levels;
mod lines;
mod symmetric;

use crate::formats::block::LEN_MAX;
use crate::formats::{self, Block, BlockScales, DType, Scales, Storable};
use levels::{Levels, inverse_of};

/// Values that all have smaller magnitudes than this become 0. No format has such small ones beside its scales of 16 bits.
const TINY: f32 = 1e-30;

/// A value of this magnitude or more needs a scale that no binary16 is.
const HUGE: f32 = 1e30;

/// Most times that the scales of a block or group are improved.
const ROUNDS: usize = 4;

/// Quantises a row to the blocks of a format. Returns false, with `to` undefined, if a value is not finite or a scale or minimum is too
/// large.
///
/// # Panics
/// For other formats than those of [`Requant::ALL`](super::Requant::ALL) without groups of a chosen size.
pub(super) fn row(format: DType, x: &[f32], to: &mut [u8]) -> bool {
    match format {
        DType::Q5_0 => blocks::<formats::q5_0::Q5_0>(x, to),
        DType::Q5_1 => blocks::<formats::q5_1::Q5_1>(x, to),
        DType::Q2K => blocks::<formats::q2_k::Q2K>(x, to),
        DType::Q3K => blocks::<formats::q3_k::Q3K>(x, to),
        DType::Q4K => blocks::<formats::q4_k::Q4K>(x, to),
        DType::Q5K => blocks::<formats::q5_k::Q5K>(x, to),
        DType::Q6K => blocks::<formats::q6_k::Q6K>(x, to),
        DType::Iq4Nl => blocks::<formats::iq4_nl::Iq4Nl>(x, to),
        DType::Iq4Xs => blocks::<formats::iq4_xs::Iq4Xs>(x, to),
        DType::Mxfp4 => blocks::<formats::mxfp4::Mxfp4>(x, to),
        format => unreachable!("{format} is not searched"),
    }
}

fn blocks<F: Storable>(x: &[f32], to: &mut [u8]) -> bool {
    let mut blocks = x.chunks_exact(F::LEN).zip(to.chunks_exact_mut(F::BYTES));
    blocks.all(|(x, to)| block::<F>(x, to))
}

fn block<F: Storable>(x: &[f32], to: &mut [u8]) -> bool {
    // Kernels look for a unit of other formats only.
    const { assert!(F::UNIT == 1.0 && F::LEN == 32 * F::SCALES.groups()) };
    if !x.iter().all(|x| x.is_finite()) {
        return false;
    }
    let scales = match F::SCALES {
        Scales::Plain => symmetric::plain::<F>(x),
        Scales::Power => symmetric::power_of_two::<F>(x),
        Scales::Signed | Scales::Halves => symmetric::factors::<F>(x),
        Scales::Minimum => lines::plain::<F>(x),
        Scales::Super | Scales::SuperHalves => lines::factors::<F>(x),
        Scales::None | Scales::Minifloats => unreachable!("{} is not searched", F::NAME),
    };
    let is_finite = |half: u16| half & 0x7c00 != 0x7c00;
    if !is_finite(scales.scale) || !is_finite(scales.minimum) {
        return false;
    }
    let mut q = [0; LEN_MAX];
    let mut of = Block::default();
    of.set_scales::<F>(&scales);
    let span = F::SCALES.span();
    for (g, (x, q)) in x.chunks_exact(span).zip(q.chunks_exact_mut(span)).enumerate() {
        let min = if F::SCALES.has_minimum() { of.min[g] } else { 0.0 };
        let inverse = inverse_of(of.scale[g]);
        for (x, q) in x.iter().zip(q) {
            *q = Levels::<F>::code(Levels::<F>::nearest((x - min) * inverse));
        }
    }
    F::store(&q, &scales, to);
    true
}

/// The scales of a block without factors.
fn halves(scale: f32, minimum: f32) -> BlockScales {
    let [scale, minimum] = [scale, minimum].map(crate::binary16::from_f32);
    BlockScales { scale, minimum, ..BlockScales::default() }
}
