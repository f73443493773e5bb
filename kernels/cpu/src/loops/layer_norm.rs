//! Layer norm of one row.

use super::sums::{squares, sum};
use crate::simd::scalar::mul_add;

/// Weight, bias and epsilon of a layer norm.
#[derive(Clone, Copy, Debug)]
pub struct LayerNormWeights<'a> {
    /// A factor for each value; 1 without them.
    pub weight: Option<&'a [f32]>,
    /// A summand for each value; 0 without them.
    pub bias: Option<&'a [f32]>,
    /// Added to the variance.
    pub eps: f32,
}

/// `out = (x − mean) / √(variance + eps) · weight + bias`. The variance is that of the deviations, so
/// that a large mean loses no precision.
#[inline(always)]
pub(crate) fn layer_norm<const FMA: bool>(x: &[f32], w: &LayerNormWeights<'_>, out: &mut [f32]) {
    let count = x.len() as f32;
    let mean = sum(x, |sum, x| sum + x) / count;
    let factor = 1.0 / (squares::<FMA>(x, mean) / count + w.eps).sqrt();
    let values = out.iter_mut().zip(x.iter().map(|x| (x - mean) * factor));
    match (w.weight, w.bias) {
        (Some(weight), Some(bias)) => {
            for ((out, x), (weight, bias)) in values.zip(weight.iter().zip(bias)) {
                *out = mul_add::<FMA>(x, *weight, *bias);
            }
        }
        (Some(weight), None) => values.zip(weight).for_each(|((out, x), weight)| *out = x * weight),
        (None, Some(bias)) => values.zip(bias).for_each(|((out, x), bias)| *out = x + bias),
        (None, None) => values.for_each(|(out, x)| *out = x),
    }
}
