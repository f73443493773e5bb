//! RMS norm of one row.

use crate::simd::scalar::mul_add;

/// Weight and epsilon of an RMS norm.
#[derive(Debug)]
pub(crate) struct RmsNormWeight<'a> {
    pub(crate) weight: &'a [f32],
    pub(crate) eps: f32,
}

/// `out = x / √(mean(x²) + eps) · weight`.
#[inline(always)]
pub(crate) fn rms_norm<const FMA: bool>(x: &[f32], w: &RmsNormWeight<'_>, out: &mut [f32]) {
    let (lines, tail) = x.as_chunks::<16>();
    let mut sums = [0.0f32; 16];
    for line in lines {
        for i in 0..16 {
            sums[i] = mul_add::<FMA>(line[i], line[i], sums[i]);
        }
    }
    let mut sum = 0.0;
    for x in tail {
        sum = mul_add::<FMA>(*x, *x, sum);
    }
    for lane in sums {
        sum += lane;
    }
    let factor = 1.0 / (sum / x.len() as f32 + w.eps).sqrt();
    for (out, (x, w)) in out.iter_mut().zip(x.iter().zip(w.weight)) {
        *out = x * factor * w;
    }
}
