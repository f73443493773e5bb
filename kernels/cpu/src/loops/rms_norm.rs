//! RMS norm of one row.

use super::sums::square_sum;

/// Weight and epsilon of an RMS norm.
#[derive(Debug)]
pub(crate) struct RmsNormWeight<'a> {
    pub(crate) weight: &'a [f32],
    pub(crate) eps: f32,
}

/// `out = x / √(mean(x²) + eps) · weight`.
#[inline(always)]
pub(crate) fn rms_norm<const FMA: bool>(x: &[f32], w: &RmsNormWeight<'_>, out: &mut [f32]) {
    let factor = 1.0 / (square_sum::<FMA>(x) / x.len() as f32 + w.eps).sqrt();
    for (out, (x, w)) in out.iter_mut().zip(x.iter().zip(w.weight)) {
        *out = x * factor * w;
    }
}
