//! Ops with a state, row by row.

use super::silu;
use crate::op::{LinearAttentionOp, StateRule};

/// Causal convolution of each of `width` columns of the rows of one sequence from its start, by the weights `[width][taps]`, that of
/// the row itself last, plus the column's bias, if there is one; then x·sigmoid(x) of it, if `is_silu`.
pub fn short_conv(
    x: &[f32],
    width: usize,
    weights: &[f32],
    bias: Option<&[f32]>,
    is_silu: bool,
) -> Vec<f64> {
    let (rows, taps) = (x.len() / width, weights.len() / width);
    let mut out = vec![0.0; x.len()];
    for (row, column) in (0..rows).flat_map(|row| (0..width).map(move |column| (row, column))) {
        let mut sum = bias.map_or(0.0, |bias| f64::from(bias[column]));
        for back in 0..taps.min(row + 1) {
            let weight = f64::from(weights[column * taps + taps - 1 - back]);
            sum += weight * f64::from(x[(row - back) * width + column]);
        }
        out[row * width + column] = if is_silu { silu(sum) } else { sum };
    }
    out
}

/// Inputs of [`linear_attention`]: those of [`Op::LinearAttention`](crate::op::Op::LinearAttention) for the rows of one sequence from
/// its start, each beginning at its own first column.
#[derive(Clone, Copy, Debug)]
pub struct LinearRows<'a> {
    /// `[rows][key_heads][key_dim]`.
    pub q: &'a [f32],
    /// `[rows][key_heads][key_dim]`.
    pub k: &'a [f32],
    /// `[rows][heads][value_dim]`.
    pub v: &'a [f32],
    /// `[rows][heads]` or `[rows][heads][key_dim]`; with decays `[rows][heads][value_dim]`.
    pub keep: &'a [f32],
    /// `[rows][heads]`, or with decays `[rows][heads][value_dim]`.
    pub rate: &'a [f32],
    /// `[heads]`, or with decays `[heads][value_dim]`.
    pub skip: Option<&'a [f32]>,
    /// `[heads][value_dim][key_dim]`.
    pub decay: Option<&'a [f32]>,
}

/// Attention whose keys and values are added up in a state: the output, and the last state, `[heads][key_dim][value_dim]`.
pub fn linear_attention(op: &LinearAttentionOp, x: &LinearRows<'_>) -> [Vec<f64>; 2] {
    let (keys, values, rates) = (op.key_dim, op.value_dim, op.rates());
    let rows = x.rate.len() / (op.heads * rates);
    let kept = x.keep.len() / (rows * op.heads);
    let wide = |x: &[f32]| x.iter().map(|x| f64::from(*x)).collect::<Vec<_>>();
    let mut state = vec![0.0; op.heads * keys * values];
    let mut out = vec![0.0; rows * op.heads * values];
    for (row, head) in (0..rows).flat_map(|row| (0..op.heads).map(move |head| (row, head))) {
        let (at, key_at) = (row * op.heads + head, row * op.key_heads + op.key_head(head));
        let q = wide(&x.q[key_at * keys..][..keys]);
        let k = wide(&x.k[key_at * keys..][..keys]);
        let v = wide(&x.v[at * values..][..values]);
        let keep = wide(&x.keep[at * kept..][..kept]);
        let rate = wide(&x.rate[at * rates..][..rates]);
        let skip = x.skip.map_or(vec![0.0], |skip| wide(&skip[head * rates..][..rates]));
        let stays = |i: usize, column: usize| match x.decay {
            Some(decay) => {
                let decay = f64::from(decay[(head * values + column) * keys + i]);
                (keep[column] * decay).exp()
            }
            None => keep[i % kept],
        };
        for column in 0..values {
            let of = |i: usize| (head * keys + i) * values + column;
            (0..keys).for_each(|i| state[of(i)] *= stays(i, column));
            let known: f64 = (0..keys).map(|i| state[of(i)] * k[i]).sum();
            let added = rate[column % rates]
                * match op.rule {
                    StateRule::Add => v[column],
                    StateRule::Delta => v[column] - known,
                };
            (0..keys).for_each(|i| state[of(i)] += k[i] * added);
            let read: f64 = (0..keys).map(|i| state[of(i)] * q[i]).sum();
            out[at * values + column] =
                f64::from(op.scale) * read + skip[column % skip.len()] * v[column];
        }
    }
    [out, state]
}
