//! Scales of formats without minimums: value = scale · level.

use super::levels::{Levels, Sums, error, inverse_of, sums};
use super::{HUGE, ROUNDS, TINY, halves};
use crate::binary16;
use crate::formats::block::power;
use crate::formats::{BlockScales, Quantised, Storable};

/// The scales that are tried with the extreme of a group at each end of the levels: it is beyond the end by −1 to 1.4 gaps.
const STEPS: u8 = 13;

/// The scale of a group that leaves the least error so far.
#[derive(Default)]
struct Best {
    /// What the sum of squared errors is less than that of squares by.
    gain: f64,
    scale: f32,
}

impl Best {
    /// Takes the best scale for the levels of the sums, and says whether it is better.
    fn take(&mut self, Sums { ll, xl, .. }: &Sums) -> bool {
        let gain = xl * xl / ll;
        let is_better = gain > self.gain;
        if is_better {
            *self = Best { gain, scale: (xl / ll) as f32 };
        }
        is_better
    }
}

/// The value of the largest magnitude.
fn extreme(x: &[f32]) -> f32 {
    x.iter().fold(0.0, |most: f32, x| if x.abs() > most.abs() { *x } else { most })
}

/// The scale of a group, of either sign; 0 for zeros.
fn scale<F: Quantised>(x: &[f32]) -> f32 {
    let extreme = extreme(x);
    if extreme.abs() < TINY {
        return 0.0;
    }
    if extreme.abs() >= HUGE {
        return f32::INFINITY;
    }
    let mut best = Best::default();
    for end in [Levels::<F>::LOW, Levels::<F>::HIGH] {
        for step in 0..STEPS {
            let beyond = Levels::<F>::GAP * (0.2 * f32::from(step) - 1.0);
            let target = end + end.signum() * beyond;
            best.take(&sums::<F>(x, 0.0, target / extreme));
        }
    }
    for _ in 0..ROUNDS {
        let again = sums::<F>(x, 0.0, inverse_of(best.scale));
        if !best.take(&again) {
            break;
        }
    }
    best.scale
}

/// The scale of a block of one group.
pub(super) fn plain<F: Quantised>(x: &[f32]) -> BlockScales {
    halves(scale::<F>(x), 0.0)
}

/// The power of two of a block of one group.
pub(super) fn power_of_two<F: Quantised>(x: &[f32]) -> BlockScales {
    let extreme = extreme(x).abs();
    if extreme < TINY {
        return BlockScales::default();
    }
    // With this one, the powers of two below the extreme and below the largest level are the same.
    let exponent = |x: f32| (x.to_bits() >> 23).cast_signed();
    let first = exponent(extreme) + 128 - exponent(Levels::<F>::HIGH);
    let mut best = (f64::INFINITY, first.clamp(0, 254));
    for tried in [first, first - 1, first + 1].map(|tried| tried.clamp(0, 254)) {
        let error = error::<F>(x, 0.0, power(tried as u8));
        if error < best.0 {
            best = (error, tried);
        }
    }
    BlockScales { scale: best.1 as u16, ..BlockScales::default() }
}

/// The scale of a block, and a signed factor of each of its groups.
pub(super) fn factors<F: Storable>(x: &[f32]) -> BlockScales {
    let span = F::SCALES.span();
    let low = -(1i32 << (F::FACTOR_BITS - 1));
    let wanted: [f32; 16] =
        std::array::from_fn(|g| x.chunks_exact(span).nth(g).map_or(0.0, scale::<F>));
    let extreme = extreme(&wanted);
    let mut best = (f64::INFINITY, halves(extreme, 0.0));
    // The largest scale has the largest factor of either sign, so that one of the other sign is as large.
    for end in [low, -low - 1] {
        // Adding 0 turns −0 into 0.
        let mut unit = extreme / end as f32 + 0.0;
        for _ in 0..ROUNDS {
            let tried = Tried::of::<F>(x, &wanted, unit);
            if tried.error >= best.0 || tried.error.is_nan() {
                break;
            }
            best = (tried.error, tried.scales);
            unit = tried.next;
        }
    }
    best.1
}

/// Factors for a scale of a block.
struct Tried {
    error: f64,
    scales: BlockScales,
    /// The best scale for these factors and integers.
    next: f32,
}

impl Tried {
    /// For each group the factor with the least error, next to the ratio of the wanted scale and the unit.
    fn of<F: Storable>(x: &[f32], wanted: &[f32; 16], unit: f32) -> Tried {
        let low = -(1i32 << (F::FACTOR_BITS - 1));
        let mut scales = halves(unit, 0.0);
        let d = binary16::to_f32(scales.scale);
        let (mut all, mut ll, mut xl) = (0.0, 0.0, 0.0);
        for (g, x) in x.chunks_exact(F::SCALES.span()).enumerate() {
            let near = (wanted[g] * inverse_of(d)).round() as i32;
            let mut of_group = (f64::INFINITY, 0);
            for factor in (near - 1..=near + 1).map(|near| near.clamp(low, -low - 1)) {
                let error = error::<F>(x, 0.0, d * factor as f32);
                if error < of_group.0 {
                    of_group = (error, factor);
                }
            }
            let (error, factor) = of_group;
            all += error;
            scales.factors[g] = factor as u8;
            let sums = sums::<F>(x, 0.0, inverse_of(d * factor as f32));
            xl += f64::from(factor) * sums.xl;
            ll += f64::from(factor * factor) * sums.ll;
        }
        Tried { error: all, scales, next: if ll > 0.0 { (xl / ll) as f32 } else { 0.0 } }
    }
}
