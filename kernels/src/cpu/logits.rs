//! What runs over every logit of a vocabulary, with the fastest instructions of the machine and the
//! same result on every one.

use crate::cpu::Isa;
use crate::cpu::isa::Kernels;
use std::sync::OnceLock;

/// Logits side by side.
const LANES: usize = 16;
/// Logits whose exponentials are added in f32 before their sum is added in f64.
const BLOCK: usize = 64 * LANES;

/// The kernels of this machine: their results are those of any other.
fn kernels() -> &'static Kernels {
    static KERNELS: OnceLock<&'static Kernels> = OnceLock::new();
    KERNELS.get_or_init(|| Isa::best().kernels())
}

/// Index of the largest finite logit, the first of equals; `None` if there is none.
pub fn argmax(logits: &[f32]) -> Option<usize> {
    argmax_with(kernels(), logits)
}

/// Natural logarithm of the softmax probability of `id`, from `logits` `[vocab]`. What is no number
/// has no probability.
///
/// # Panics
/// When there is no logit `id`.
pub fn logprob(logits: &[f32], id: u32) -> f32 {
    logprob_with(kernels(), logits, id)
}

fn argmax_with(kernels: &Kernels, logits: &[f32]) -> Option<usize> {
    let (mut max, mut first) = (f32::NEG_INFINITY, None);
    for (block, logits) in logits.chunks(BLOCK).enumerate() {
        let largest = (kernels.max_finite)(logits);
        if largest > max {
            (max, first) = (largest, Some(block * BLOCK));
        }
    }
    let first = first?;
    logits[first..].iter().position(|logit| *logit == max).map(|at| first + at)
}

fn logprob_with(kernels: &Kernels, logits: &[f32], id: u32) -> f32 {
    let max = (kernels.largest)(logits);
    let sum: f64 = logits.chunks(BLOCK).map(|block| (kernels.sum_exp)(block, max)).sum();
    (f64::from(logits[id as usize] - max) - sum.ln()) as f32
}

/// The largest finite logit; −∞ if there is none.
#[inline(always)]
pub(crate) fn max_finite(logits: &[f32]) -> f32 {
    largest_of(logits, f32::is_finite)
}

/// The largest logit that is a number; −∞ if there is none.
#[inline(always)]
pub(crate) fn largest(logits: &[f32]) -> f32 {
    largest_of(logits, |logit| !logit.is_nan())
}

#[inline(always)]
fn largest_of(logits: &[f32], counts: impl Fn(f32) -> bool) -> f32 {
    let larger = |max: &mut f32, logit: f32| {
        *max = if counts(logit) && logit > *max { logit } else { *max };
    };
    let mut lanes = [f32::NEG_INFINITY; LANES];
    let (lines, tail) = logits.as_chunks::<LANES>();
    for line in lines {
        for (max, logit) in lanes.iter_mut().zip(line) {
            larger(max, *logit);
        }
    }
    let mut max = f32::NEG_INFINITY;
    lanes.iter().chain(tail).for_each(|logit| larger(&mut max, *logit));
    max
}

/// Σ exp(logit − max) of a block.
#[inline(always)]
pub(crate) fn sum_exp(block: &[f32], max: f32) -> f64 {
    let mut lanes = [0.0; LANES];
    let (lines, tail) = block.as_chunks::<LANES>();
    for line in lines {
        for (sum, logit) in lanes.iter_mut().zip(line) {
            *sum += exp(logit - max);
        }
    }
    let tail: f64 = tail.iter().map(|logit| f64::from(exp(logit - max))).sum();
    lanes.into_iter().map(f64::from).sum::<f64>() + tail
}

/// eˣ of x ≤ 0, within 2 units in the last place down to e⁻⁸⁷; less, or no number, gives as much as
/// that. Polynomial of Cephes' `expf`.
#[inline(always)]
fn exp(x: f32) -> f32 {
    /// 1.5 · 2²³: what is added to it is rounded to an integer, which its lowest bits hold.
    const ROUND: f32 = 12_582_912.0;
    /// ln 2 in two parts, of which the first has few bits.
    const LN_2: [f32; 2] = [0.693_359_4, -2.121_944_4e-4];
    const POLYNOMIAL: [f32; 6] =
        [1.987_569_1e-4, 1.398_2e-3, 8.333_452e-3, 4.166_579_6e-2, 0.166_666_65, 0.5];
    let x = if x > -87.0 { x } else { -87.0 };
    let rounded = x * std::f32::consts::LOG2_E + ROUND;
    let n = rounded - ROUND;
    let rest = x - n * LN_2[0] - n * LN_2[1];
    let p = POLYNOMIAL.iter().fold(0.0, |p, c| p * rest + c);
    let power = rounded.to_bits().wrapping_sub(ROUND.to_bits()).wrapping_add(127) << 23;
    (p * rest * rest + rest + 1.0) * f32::from_bits(power)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exponential_strays() {
        for i in 0..=870_000 {
            let x = -(i as f32) * 1e-4;
            let exact = f64::from(x).exp();
            let error = (f64::from(exp(x)) / exact - 1.0).abs();
            assert!(error < 2.4e-7, "{x}: {} instead of {exact}", exp(x));
        }
        for least in [-88.0, -1e30, f32::NEG_INFINITY, f32::NAN] {
            assert!((0.0..2e-38).contains(&exp(least)), "{least}");
        }
    }

    #[test]
    fn a_sum_over_odd_lengths_leaves_logits_out() {
        for len in [1, 15, 16, 17, 1023, 1024, 1025, 49_152, 262_144] {
            let logits: Vec<f32> = (0..len)
                .map(|i: u32| (i.wrapping_mul(2_654_435_761) >> 20) as f32 / 97.0)
                .collect();
            let max = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            let sum: f64 = logits.iter().map(|l| f64::from(l - max).exp()).sum();
            for id in [0, len / 2, len - 1] {
                let exact = f64::from(logits[id as usize] - max) - sum.ln();
                let found = f64::from(logprob(&logits, id));
                assert!((found - exact).abs() < 3e-6, "{len}: {found} instead of {exact}");
            }
            let first = logits.iter().position(|logit| *logit == max);
            assert_eq!(argmax(&logits), first, "{len}");
        }
    }

    #[test]
    fn an_isa_chooses_another_token_or_gives_it_another_probability() {
        let noise = |i: u32| (i.wrapping_mul(2_654_435_761) >> 20) as f32 / 97.0 - 20.0;
        let mut odd: Vec<f32> = (0..5000).map(noise).collect();
        (odd[3], odd[1030], odd[4990]) = (f32::NAN, f32::INFINITY, f32::NEG_INFINITY);
        for logits in [(0..2049).map(noise).collect(), vec![1.0; 17], odd] {
            let want = (argmax(&logits), logprob(&logits, 7).to_bits());
            for isa in Isa::available() {
                let found = argmax_with(isa.kernels(), &logits);
                let logprob = logprob_with(isa.kernels(), &logits, 7);
                assert_eq!((found, logprob.to_bits()), want, "{}", isa.name());
            }
        }
    }

    #[test]
    fn what_is_no_number_is_chosen_or_spoils_the_rest() {
        let bad = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY];
        assert_eq!(argmax(&bad), None);
        assert_eq!(argmax(&[f32::NAN, 1.0, f32::INFINITY, 2.0, 2.0]), Some(3));
        assert!((logprob(&[f32::NAN, 0.0, f32::NEG_INFINITY], 1)).abs() < 1e-6);
        assert_eq!(logprob(&[f32::NEG_INFINITY, 0.0], 0), f32::NEG_INFINITY);
    }
}
