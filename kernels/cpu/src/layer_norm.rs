//! Layer norm of rows.

use crate::context::Cpu;
use crate::loops::layer_norm::LayerNormWeights;

/// Groups of values that are normalised by themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NormGroups {
    /// Values of a row.
    pub width: usize,
    /// Values of a group, which divide a row: all of it, or a head.
    pub group: usize,
}

/// `out = (x − mean) / √(variance + eps) · weight + bias` for every group of `x`. Weights and biases are those of a row.
///
/// # Panics
/// When weights or biases are not those of a row, `x` and `out` differ in length, or `x` is not whole rows of groups.
pub fn layer_norm(
    ctx: &Cpu,
    x: &[f32],
    groups: NormGroups,
    weights: &LayerNormWeights<'_>,
    out: &mut [f32],
) {
    let NormGroups { width, group } = groups;
    let is_row = |values: Option<&[f32]>| values.is_none_or(|values| values.len() == width);
    assert!(
        is_row(weights.weight) && is_row(weights.bias),
        "weights or biases are not those of a row"
    );
    assert!(width > 0 && x.len() == out.len() && x.len().is_multiple_of(width), "not whole rows");
    assert!(group > 0 && width.is_multiple_of(group), "not whole groups");
    let kernels = ctx.kernels();
    let chunk = ctx.rows_per_task(x.len() / width, width) * width;
    ctx.pool().chunks_mut(out, chunk, |i, out| {
        let x = &x[i * chunk..][..out.len()];
        let all = x.chunks_exact(group).zip(out.chunks_exact_mut(group));
        for (at, (x, out)) in all.enumerate() {
            let first = at * group % width;
            let of_group = first..first + group;
            let weights = LayerNormWeights {
                weight: weights.weight.map(|values| &values[of_group.clone()]),
                bias: weights.bias.map(|values| &values[of_group.clone()]),
                eps: weights.eps,
            };
            (kernels.layer_norm)(x, &weights, out);
        }
    });
}
