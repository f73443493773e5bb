//! Reductions over the logits of a vocabulary: the same result on every instruction set.

/// Logits per vector.
const LANES: usize = 16;

/// The largest finite logit; −∞ if there is none.
#[inline(always)]
pub(crate) fn max_finite(logits: &[f32]) -> f32 {
    max_of(logits, f32::is_finite)
}

/// The largest logit that is not NaN; −∞ if there is none.
#[inline(always)]
pub(crate) fn max(logits: &[f32]) -> f32 {
    max_of(logits, |logit| !logit.is_nan())
}

#[inline(always)]
fn max_of(logits: &[f32], counts: impl Fn(f32) -> bool) -> f32 {
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

/// eˣ for x ≤ 0, within 2 ULP down to e⁻⁸⁷, to which smaller x and NaN are clamped. Polynomial of
/// Cephes' `expf`.
#[inline(always)]
pub(crate) fn exp(x: f32) -> f32 {
    /// 1.5 · 2²³: adding it rounds to an integer, which is in the lowest bits of the sum.
    const ROUND: f32 = 12_582_912.0;
    /// ln 2 in two parts; the first has few bits, so that n times it is exact.
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
    fn exp_is_within_two_ulp() {
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
}
