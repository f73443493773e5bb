//! Sums over the values of one row, and ops that need them.

use crate::simd::scalar::mul_add;

/// Accumulates all values with `add`, in 16 sums that are added last.
#[inline(always)]
pub(crate) fn sum(x: &[f32], add: impl Fn(f32, f32) -> f32) -> f32 {
    let (lines, tail) = x.as_chunks::<16>();
    let mut sums = [0.0f32; 16];
    for line in lines {
        for i in 0..16 {
            sums[i] = add(sums[i], line[i]);
        }
    }
    let rest = tail.iter().fold(0.0, |sum, x| add(sum, *x));
    sums.iter().fold(rest, |sum, lane| sum + lane)
}

/// The sum of the squares of `x − from`.
#[inline(always)]
pub(crate) fn squares<const FMA: bool>(x: &[f32], from: f32) -> f32 {
    sum(x, |sum, x| {
        let deviation = x - from;
        mul_add::<FMA>(deviation, deviation, sum)
    })
}

/// The sum of the squares.
#[inline(always)]
pub(crate) fn square_sum<const FMA: bool>(x: &[f32]) -> f32 {
    sum(x, |sum, x| mul_add::<FMA>(x, x, sum))
}

/// `out = max(x − mean − deviations · σ, 0)`, with the variance over one value less. What is no number stays none.
#[inline(always)]
pub(crate) fn excess<const FMA: bool>(x: &[f32], deviations: f32, out: &mut [f32]) {
    let mean = sum(x, |sum, x| sum + x) / x.len() as f32;
    let others = x.len().saturating_sub(1).max(1) as f32;
    let sigma = (squares::<FMA>(x, mean) / others).sqrt();
    let least = mul_add::<FMA>(deviations, sigma, mean);
    for (out, x) in out.iter_mut().zip(x) {
        let above = x - least;
        *out = if above < 0.0 { 0.0 } else { above };
    }
}
