//! Layer norm of rows.

use crate::context::Cpu;
use crate::loops::layer_norm::LayerNormWeights;

/// `out = (x − mean) / √(variance + eps) · weight + bias` for every row of as many values of `x` as there
/// are weights.
///
/// # Panics
/// When `weight` and `bias` or `x` and `out` differ in length, or `x` is not whole rows.
pub fn layer_norm(ctx: &Cpu, x: &[f32], weights: &LayerNormWeights<'_>, out: &mut [f32]) {
    let width = weights.weight.len();
    assert_eq!(width, weights.bias.len(), "weight and bias differ in length");
    assert!(width > 0 && x.len() == out.len() && x.len().is_multiple_of(width), "not whole rows");
    let kernels = ctx.kernels();
    let chunk = ctx.rows_per_task(x.len() / width, width) * width;
    ctx.pool().chunks_mut(out, chunk, |i, out| {
        let x = &x[i * chunk..][..out.len()];
        for (x, out) in x.chunks_exact(width).zip(out.chunks_exact_mut(width)) {
            (kernels.layer_norm)(x, weights, out);
        }
    });
}
