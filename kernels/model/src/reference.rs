//! Reference implementation: every op written naively, in f64 where possible. It is slow and shares no
//! code with the kernels, so tests use it as their oracle.

mod curves;
mod experts;
mod formats;
mod states;

pub use curves::{
    activation, curve, gelu, gelu_tanh, relu_squared, sigmoid, silu, soft_cap, softplus, xielu,
};
pub use experts::{expert_middle, route};
pub use formats::{dequantize, quantize};
pub use states::{LinearRows, linear_attention, short_conv};

use std::ops::Range;

use crate::formats::DType;

/// Activations after dynamic quantisation for weights of `dtype`: `x` rounded to int8, in blocks of 32 or of 256, and for blocks
/// of 32 the block sums, which Q4_1 and Q5_1 multiply by the weights' minimums. Float weights leave
/// `x` unchanged.
fn rounded_activations(dtype: DType, x: &[f32]) -> (Vec<f64>, Vec<f64>) {
    let f16 = |v: f32| half::f16::from_f32(v).to_f32();
    let exact = x.iter().map(|x| f64::from(*x)).collect();
    match dtype.block_len() {
        1 => (exact, Vec::new()),
        32 | 64 | 128 => {
            let (mut values, mut sums) = (Vec::new(), Vec::new());
            for block in x.chunks(32) {
                let amax = block.iter().fold(0.0f32, |m, x| m.max(x.abs()));
                let (d, inverse) = (amax / 127.0, if amax == 0.0 { 0.0 } else { 127.0 / amax });
                let q: Vec<f32> = block.iter().map(|x| (x * inverse).round_ties_even()).collect();
                values.extend(q.iter().map(|q| f64::from(f16(d)) * f64::from(*q)));
                sums.push(f64::from(f16(d * q.iter().sum::<f32>())));
            }
            (values, sums)
        }
        _ => {
            let mut values = Vec::new();
            for block in x.chunks(256) {
                let mut max = 0.0f32;
                for x in block {
                    if x.abs() > max.abs() {
                        max = *x;
                    }
                }
                let inverse = if max == 0.0 { 0.0 } else { -127.0 / max };
                let d = if max == 0.0 { 0.0 } else { 1.0 / inverse };
                let q = block.iter().map(|x| (x * inverse).round_ties_even());
                values.extend(q.map(|q| f64::from(d) * f64::from(q)));
            }
            (values, Vec::new())
        }
    }
}

/// `x[m, k] · W[n, k]ᵀ` in f64, with activations rounded to int8. `bytes` holds
/// n rows of k values of format `dtype`.
pub fn matmul(dtype: DType, bytes: &[u8], k: usize, x: &[f32]) -> Vec<f64> {
    let weights = dequantize(dtype, bytes);
    let minimum_at = matches!(dtype, DType::Q4_1 | DType::Q5_1).then_some(2);
    let mut out = Vec::new();
    for x in x.chunks(k) {
        let (x, sums) = rounded_activations(dtype, x);
        for (row, w) in weights.chunks(k).enumerate() {
            let mut sum: f64 = w.iter().zip(&x).map(|(w, x)| f64::from(*w) * x).sum();
            if let Some(at) = minimum_at {
                for (b, s) in sums.iter().enumerate() {
                    let start = (row * sums.len() + b) * dtype.block_bytes() + at;
                    let m = half::f16::from_le_bytes([bytes[start], bytes[start + 1]]).to_f64();
                    sum += m * (s - x[b * 32..][..32].iter().sum::<f64>());
                }
            }
            out.push(sum);
        }
    }
    out
}

/// A row of activations after its quantisation to int8 with one scale: x_f = (q − z) · d with q within ±127.
/// With a minimum, z is chosen so that the integers cover the row's values and 0; otherwise it is 0.
pub fn rounded_by_row(row: &[f32], with_min: bool) -> Vec<f64> {
    let low = row.iter().fold(0.0f32, |low, x| low.min(*x));
    let high = row.iter().fold(0.0f32, |high, x| high.max(*x));
    let (span, steps) = if with_min { (high - low, 254.0) } else { (high.max(-low), 127.0) };
    let inverse = steps / span;
    if !inverse.is_finite() {
        return vec![0.0; row.len()];
    }
    let zero = if with_min { (-127.0 - low * inverse).round_ties_even() } else { 0.0 };
    let q = row.iter().map(|x| ((x * inverse).round_ties_even() + zero).clamp(-127.0, 127.0));
    q.map(|q| f64::from(q - zero) * f64::from(span / steps)).collect()
}

/// `x[m, k] · W[n, k]ᵀ` in f64, with activations rounded by [`rounded_by_row`].
pub fn matmul_by_row(weights: &[f32], k: usize, x: &[f32], with_min: bool) -> Vec<f64> {
    let mut out = Vec::new();
    for x in x.chunks(k).map(|row| rounded_by_row(row, with_min)) {
        let dot = |w: &[f32]| w.iter().zip(&x).map(|(w, x)| f64::from(*w) * x).sum::<f64>();
        out.extend(weights.chunks(k).map(dot));
    }
    out
}

/// `x[m, k] · W[n, k]ᵀ` in f64, with unrounded activations.
pub fn matmul_exact(weights: &[f32], k: usize, x: &[f32]) -> Vec<f64> {
    let dot =
        |x: &[f32], w: &[f32]| x.iter().zip(w).map(|(x, w)| f64::from(*x) * f64::from(*w)).sum();
    x.chunks(k).flat_map(|x| weights.chunks(k).map(move |w| dot(x, w))).collect()
}

/// RMS norm of each group of `weight.len()` values.
pub fn rms_norm(x: &[f32], weight: &[f32], eps: f32) -> Vec<f64> {
    let mut out = Vec::new();
    for x in x.chunks(weight.len()) {
        let mean = x.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>() / x.len() as f64;
        let root = (mean + f64::from(eps)).sqrt();
        out.extend(x.iter().zip(weight).map(|(x, w)| f64::from(*x) / root * f64::from(*w)));
    }
    out
}

/// Layer norm of each group of `group` values: `(x − mean) / √(variance + eps) · weight + bias`, with weights and biases of
/// whole rows of one or more groups, in turn.
pub fn layer_norm(x: &[f32], group: usize, weight: &[f32], bias: &[f32], eps: f32) -> Vec<f64> {
    let weights = weight.iter().zip(bias).cycle();
    let normed = x.chunks(group).flat_map(|x| {
        let count = x.len() as f64;
        let mean = x.iter().map(|x| f64::from(*x)).sum::<f64>() / count;
        let variance = x.iter().map(|x| (f64::from(*x) - mean).powi(2)).sum::<f64>() / count;
        let root = (variance + f64::from(eps)).sqrt();
        x.iter().map(move |x| (f64::from(*x) - mean) / root)
    });
    normed.zip(weights).map(|(x, (w, b))| x * f64::from(*w) + f64::from(*b)).collect()
}

/// `x[i] + table[rows[i]]` for each row of `width` values.
pub fn add_rows(x: &[f32], table: &[f32], width: usize, rows: &[usize]) -> Vec<f64> {
    let mut out = Vec::new();
    for (x, row) in x.chunks(width).zip(rows) {
        let added = &table[row * width..(row + 1) * width];
        out.extend(x.iter().zip(added).map(|(x, y)| f64::from(*x) + f64::from(*y)));
    }
    out
}

/// Some columns of rows of `width` values, each `times` times in a row.
pub fn columns(x: &[f32], width: usize, kept: Range<usize>, times: usize) -> Vec<f32> {
    let kept = x.chunks(width).flat_map(|row| &row[kept.clone()]);
    kept.flat_map(|x| std::iter::repeat_n(*x, times)).collect()
}

/// Rows of `heads` heads: the values of each head in `a`, followed by those in `b`, of which all heads of a row get the same if
/// `is_shared`.
pub fn join_heads(a: &[f32], b: &[f32], rows: usize, heads: usize, is_shared: bool) -> Vec<f32> {
    let (of_a, of_b) =
        (a.len() / (rows * heads), b.len() / rows / if is_shared { 1 } else { heads });
    let mut out = Vec::new();
    for (row, head) in (0..rows).flat_map(|row| (0..heads).map(move |head| (row, head))) {
        let place = row * heads + head;
        out.extend(&a[place * of_a..][..of_a]);
        out.extend(&b[if is_shared { row } else { place } * of_b..][..of_b]);
    }
    out
}

/// `x + Σᵢ coefficients[first + i] · summands[i]` for each of `rows` rows, with coefficients of its own.
pub fn weighted_sum(
    x: &[f32],
    coefficients: &[f32],
    first: usize,
    summands: &[&[f32]],
    rows: usize,
) -> Vec<f64> {
    let (width, columns) = (x.len() / rows, coefficients.len() / rows);
    let of_row = |i: usize| &coefficients[i / width * columns + first..];
    let added = |i: usize| -> f64 {
        let pairs = summands.iter().zip(of_row(i));
        pairs.map(|(y, c)| f64::from(*c) * f64::from(y[i])).sum()
    };
    x.iter().enumerate().map(|(i, x)| f64::from(*x) + added(i)).collect()
}

/// `max(x − mean − deviations · σ, 0)` for each row of `width` values, with the variance `σ²` over one value less; a single
/// value has no deviation.
pub fn excess(x: &[f32], width: usize, deviations: f64) -> Vec<f64> {
    let of_row = |x: &[f32]| {
        let mean = x.iter().map(|x| f64::from(*x)).sum::<f64>() / x.len() as f64;
        let squares = x.iter().map(|x| (f64::from(*x) - mean).powi(2)).sum::<f64>();
        let sigma = if x.len() > 1 { (squares / (x.len() - 1) as f64).sqrt() } else { 0.0 };
        x.iter().map(|x| (f64::from(*x) - mean - deviations * sigma).max(0.0)).collect::<Vec<_>>()
    };
    x.chunks(width).flat_map(of_row).collect()
}

/// `x · |y| / |x|` for each row of `width` values; a row of zeros stays zero.
pub fn with_length(x: &[f32], y: &[f32], width: usize) -> Vec<f64> {
    let length = |row: &[f32]| row.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>().sqrt();
    let rows = x.chunks(width).zip(y.chunks(width));
    rows.flat_map(|(x, y)| {
        let factor = if length(x) > 0.0 { length(y) / length(x) } else { 0.0 };
        x.iter().map(move |x| f64::from(*x) * factor)
    })
    .collect()
}

/// Input of [`attention`]: queries, keys and values of one sequence.
#[derive(Clone, Debug)]
pub struct DenseAttention<'a> {
    /// `[rows][heads][key_dim]`.
    pub q: &'a [f32],
    /// `[positions][kv_heads][key_dim]`.
    pub k: &'a [f32],
    /// `[positions][kv_heads][value_dim]`.
    pub v: &'a [f32],
    /// (query heads, KV heads, values per key).
    pub shape: (usize, usize, usize),
    /// Factor on the scores q·k.
    pub scale: f64,
    /// Soft cap on the scores.
    pub soft_cap: Option<f64>,
    /// For each head, the factor on the distance of a key, whose product is subtracted from the score.
    pub slopes: Option<&'a [f64]>,
    /// For each head, the score of a key that every row sees and that has no value.
    pub sinks: Option<&'a [f64]>,
}

/// Attention with an explicit mask: `sees(row)` returns the key positions that a query row attends
/// to. A row without any becomes zero.
pub fn attention(job: &DenseAttention<'_>, sees: impl Fn(usize) -> Vec<usize>) -> Vec<f64> {
    let (heads, kv_heads, dim) = job.shape;
    let value_dim = job.v.len() * dim / job.k.len();
    let dot = |a: &[f32], b: &[f32]| -> f64 {
        a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
    };
    let mut out = Vec::new();
    for (i, q) in job.q.chunks(dim).enumerate() {
        let (row, kv_head) = (i / heads, i % heads / (heads / kv_heads));
        let at = |key: usize| key * kv_heads + kv_head;
        let score = |key: usize| {
            let s = dot(q, &job.k[at(key) * dim..][..dim]) * job.scale;
            let s = job.soft_cap.map_or(s, |cap| soft_cap(s, cap));
            let slope = job.slopes.map_or(0.0, |slopes| slopes[i % heads]);
            s - slope * row.abs_diff(key) as f64
        };
        let keys = sees(row);
        let scores: Vec<f64> = keys.iter().map(|key| score(*key)).collect();
        let sink = job.sinks.map(|sinks| sinks[i % heads]);
        let max = scores.iter().copied().chain(sink).fold(f64::NEG_INFINITY, f64::max);
        let weights: Vec<f64> = scores.iter().map(|s| (s - max).exp()).collect();
        let of_sink = sink.map(|sink| (sink - max).exp());
        let sum: f64 = weights.iter().copied().chain(of_sink).sum();
        out.extend((0..value_dim).map(|d| {
            let value = |key: usize| f64::from(job.v[at(key) * value_dim + d]);
            let parts = keys.iter().zip(&weights).map(|(key, w)| w * value(*key));
            if keys.is_empty() { 0.0 } else { parts.sum::<f64>() / sum }
        }));
    }
    out
}
