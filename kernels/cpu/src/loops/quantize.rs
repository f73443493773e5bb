//! Quantises activations to int8 as llama.cpp does for each weight format, so that results can be
//! compared with it.

use lapwing_model::binary16;
use lapwing_model::formats::q6_k::Q6K;
use lapwing_model::formats::{ActivationBlocks, DType, Quantised, QuantisedInfo};
use std::cmp::Ordering;

/// 32 quantised activations of a row: `value = d · q` with q within ±127.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(C)]
pub struct Q8Block {
    /// Integers.
    pub q: [i8; 32],
    /// Scale.
    pub d: f32,
    /// Factor of the weights' minimums: the sum of the values, or with blocks of 256 the sum of the
    /// integers, since their scale is multiplied last.
    pub s: f32,
    /// Initial value of the integer sums: −zero point · Σq, over the whole block, or with blocks of
    /// 256 and with scales of halves over each half; 0 for formats without a zero point.
    pub start: [i32; 2],
}

impl Q8Block {
    /// The sum of the integers of a half, of a block that formats with minimums share with Q6_K.
    #[inline(always)]
    pub(crate) fn half_sum(&self, half: usize) -> f32 {
        // A power of two, so that the product is exact.
        self.start[half] as f32 * (-1.0 / Q6K::ZERO_POINT as f32)
    }
}

/// How activations are quantised for a weight format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuantScheme {
    /// ggml's Q8_0: blocks of 32, scale amax/127 rounded to binary16. The zero point is that of the
    /// weights.
    Q8_0(i32),
    /// As `Q8_0`, for weights whose halves of groups have scales of their own: each half has an initial value.
    Q8_0Halves(i32),
    /// ggml's Q8_1: blocks of 32 with their sum, which is computed with the unrounded scale and
    /// then rounded to binary16.
    Q8_1,
    /// ggml's Q8_K: blocks of 256 with an f32 scale. The zero point is that of the weights.
    Q8K(i32),
}

impl QuantScheme {
    /// The scheme for weights of this format; `None` for float formats.
    pub fn of_format(dtype: DType) -> Option<QuantScheme> {
        let QuantisedInfo { scales, zero_point, activations, .. } = *dtype.quantised()?;
        Some(match activations {
            ActivationBlocks::Q8_0 if scales.has_halves() => QuantScheme::Q8_0Halves(zero_point),
            ActivationBlocks::Q8_0 => QuantScheme::Q8_0(zero_point),
            ActivationBlocks::Q8_1 => QuantScheme::Q8_1,
            // Kernels of formats with minimums use no zero point, so they share blocks with those of Q6_K.
            ActivationBlocks::Q8K if scales.has_minimum() => QuantScheme::Q8K(Q6K::ZERO_POINT),
            ActivationBlocks::Q8K => QuantScheme::Q8K(zero_point),
        })
    }

    /// Columns that share a scale.
    pub(crate) fn columns(self) -> usize {
        match self {
            QuantScheme::Q8_0(_) | QuantScheme::Q8_0Halves(_) | QuantScheme::Q8_1 => 32,
            QuantScheme::Q8K(_) => 256,
        }
    }
}

/// Quantises one row into its blocks.
#[inline(always)]
pub(crate) fn row(x: &[f32], scheme: QuantScheme, out: &mut [Q8Block]) {
    match scheme {
        QuantScheme::Q8_0(offset) => blocks::<false, false>(x, offset, out),
        QuantScheme::Q8_0Halves(offset) => blocks::<false, true>(x, offset, out),
        QuantScheme::Q8_1 => blocks::<true, false>(x, 0, out),
        QuantScheme::Q8K(offset) => super_blocks(x, offset, out),
    }
}

/// Nearest integer, ties to even, for |x| below 2^22; truncated to 8 bits.
#[inline(always)]
fn nearest(x: f32) -> i8 {
    const MAGIC: f32 = 12_582_912.0;
    (x + MAGIC).to_bits().wrapping_sub(MAGIC.to_bits()) as i8
}

#[inline(always)]
fn blocks<const ROUNDED_SUM: bool, const HALVES: bool>(
    x: &[f32],
    offset: i32,
    out: &mut [Q8Block],
) {
    for (x, out) in x.as_chunks::<32>().0.iter().zip(out) {
        let mut lanes = [0.0f32; 16];
        for i in 0..16 {
            let (a, b) = (x[i].abs(), x[16 + i].abs());
            lanes[i] = if a > b { a } else { b };
        }
        let amax = largest(lanes);
        let d = amax / 127.0;
        let inverse = inverse_of(amax);
        for (q, x) in out.q.iter_mut().zip(x) {
            *q = nearest(x * inverse);
        }
        let sums = half_sums(&out.q);
        let sum = sums[0] + sums[1];
        out.d = binary16::round(d);
        out.s = if ROUNDED_SUM { binary16::round(d * sum as f32) } else { 0.0 };
        out.start = if HALVES { sums.map(|sum| -offset * sum) } else { [-offset * sum, 0] };
    }
}

#[inline(always)]
fn super_blocks(x: &[f32], offset: i32, out: &mut [Q8Block]) {
    for (x, out) in x.as_chunks::<256>().0.iter().zip(out.as_chunks_mut::<8>().0) {
        let (mut high, mut low) = ([0.0f32; 16], [0.0f32; 16]);
        for x in x.as_chunks::<16>().0 {
            for i in 0..16 {
                high[i] = if x[i] > high[i] { x[i] } else { high[i] };
                // The negated minimum.
                low[i] = if -x[i] > low[i] { -x[i] } else { low[i] };
            }
        }
        let (d, inverse) = super_scale(x, largest(high), -largest(low));
        for (x, out) in x.as_chunks::<32>().0.iter().zip(out) {
            for (q, x) in out.q.iter_mut().zip(x) {
                *q = nearest(x * inverse);
            }
            let sums = half_sums(&out.q);
            out.d = d;
            out.s = (sums[0] + sums[1]) as f32;
            out.start = sums.map(|sum| -offset * sum);
        }
    }
}

/// The sums of the halves of a block.
#[inline(always)]
pub(super) fn half_sums(q: &[i8; 32]) -> [i32; 2] {
    [&q[..16], &q[16..]].map(|half| half.iter().map(|q| i32::from(*q)).sum())
}

/// Factor that scales the largest magnitude to 127.
#[inline(always)]
pub(crate) fn inverse_of(amax: f32) -> f32 {
    if amax == 0.0 { 0.0 } else { 127.0 / amax }
}

/// The largest lane, by halves to keep the dependency chain short.
#[inline(always)]
fn largest(lanes: [f32; 16]) -> f32 {
    let larger = |a: f32, b: f32| if a > b { a } else { b };
    let eight: [f32; 8] = std::array::from_fn(|i| larger(lanes[i], lanes[i + 8]));
    let four: [f32; 4] = std::array::from_fn(|i| larger(eight[i], eight[i + 4]));
    larger(larger(four[0], four[2]), larger(four[1], four[3]))
}

/// Scale and inverse scale, from the first value of the largest magnitude, sign included. `high` is
/// max(x, 0) and `low` is min(x, 0).
#[inline(always)]
pub(crate) fn super_scale(x: &[f32; 256], high: f32, low: f32) -> (f32, f32) {
    if high == 0.0 && low == 0.0 {
        return (0.0, 0.0);
    }
    let first = match high.partial_cmp(&-low) {
        Some(Ordering::Greater) => high,
        Some(Ordering::Less) => low,
        _ => x.iter().copied().find(|x| x.abs() == high).unwrap_or(high),
    };
    let inverse = -127.0 / first;
    (1.0 / inverse, inverse)
}
