//! Activations to int8, in the way llama.cpp does for each weight format, so that results
//! can be compared with it.

use crate::binary16;
use crate::cpu::gemm::InputSource;
use crate::cpu::norm::each_normed;
use crate::cpu::tile::Q8Block;
use crate::cpu::unpack;
use crate::cpu::{Activations, Cpu};
use crate::quant::DType;
use std::cmp::Ordering;

/// How activations are quantised for a weight format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QuantScheme {
    /// BlockGrid of 32, scale amax/127 rounded to binary16 (ggml's Q8_0), for weights stored as
    /// unsigned integers above their values by the given offset.
    Q8_0(i32),
    /// BlockGrid of 32, and the sum of a block is that of the unrounded scale, rounded to
    /// binary16 (ggml's Q8_1).
    Q8_1,
    /// BlockGrid of 256 with an f32 scale (ggml's Q8_K); serves all K formats.
    Q8K,
}

impl QuantScheme {
    /// `None` where the products take activations as they are: with float weights, and where
    /// nothing is to be rounded.
    pub(crate) fn of(activations: Activations, dtype: DType) -> Option<QuantScheme> {
        match activations {
            Activations::Int8 => QuantScheme::of_format(dtype),
            Activations::F32 => None,
        }
    }

    /// For a format whose activations are to be rounded, if it takes rounded ones.
    pub(crate) fn of_format(dtype: DType) -> Option<QuantScheme> {
        match dtype {
            DType::Q4_0 | DType::Q5_0 | DType::Q8_0 => {
                Some(QuantScheme::Q8_0(unpack::offset(dtype)))
            }
            DType::Q4_1 | DType::Q5_1 => Some(QuantScheme::Q8_1),
            DType::Q4K | DType::Q5K | DType::Q6K => Some(QuantScheme::Q8K),
            DType::F32 | DType::F16 | DType::Bf16 => None,
        }
    }

    /// Columns that share a scale.
    pub(crate) fn columns(self) -> usize {
        match self {
            QuantScheme::Q8_0(_) | QuantScheme::Q8_1 => 32,
            QuantScheme::Q8K => 256,
        }
    }
}

/// A quantised activation matrix; its memory is kept between calls.
#[derive(Debug, Default)]
pub(crate) struct Q8Buffer {
    blocks: Vec<Q8Block>,
    groups: usize,
}

impl Q8Buffer {
    /// Room for rows of `k` values, with whatever was there.
    pub(crate) fn room(&mut self, rows: usize, k: usize) -> &mut [Q8Block] {
        self.groups = k / 32;
        self.blocks.resize(rows * self.groups, Q8Block::default());
        &mut self.blocks
    }

    /// Quantises rows of `k` values: those of `x`, or their norms.
    pub(crate) fn fill(&mut self, ctx: &Cpu, kind: QuantScheme, source: &InputSource<'_>) {
        let InputSource { x, k, norm } = source;
        let (rows, groups) = (x.len() / k, k / 32);
        self.room(rows, *k);
        let kernels = ctx.kernels();
        let per_task = ctx.rows_per_task(rows, *k);
        ctx.pool().chunks_mut(&mut self.blocks, per_task * groups, |i, blocks| {
            let x = &x[i * per_task * k..];
            let rows = x.chunks_exact(*k).zip(blocks.chunks_exact_mut(groups));
            let Some(norm) = norm else {
                return rows.for_each(|(x, blocks)| (kernels.quantize)(x, kind, blocks));
            };
            each_normed(ctx, norm, rows, |x, blocks| (kernels.quantize)(x, kind, blocks));
        });
    }

    /// The quantised rows.
    pub(crate) fn rows_q8(&self) -> Q8Rows<'_> {
        Q8Rows { blocks: &self.blocks, groups: self.groups }
    }
}

/// Rows of quantised activations.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Q8Rows<'a> {
    /// `[rows][groups]`.
    pub(crate) blocks: &'a [Q8Block],
    /// Groups of 32 columns per row.
    pub(crate) groups: usize,
}

/// Quantises one row into its blocks.
#[inline(always)]
pub(crate) fn row(x: &[f32], kind: QuantScheme, out: &mut [Q8Block]) {
    match kind {
        QuantScheme::Q8_0(offset) => blocks::<false>(x, offset, out),
        QuantScheme::Q8_1 => blocks::<true>(x, 0, out),
        QuantScheme::Q8K => super_blocks(x, out),
    }
}

/// Nearest integer, ties to even, for |x| below 2^22; the result is cut to 8 bits.
#[inline(always)]
fn nearest(x: f32) -> i8 {
    const MAGIC: f32 = 12_582_912.0;
    (x + MAGIC).to_bits().wrapping_sub(MAGIC.to_bits()) as i8
}

#[inline(always)]
fn blocks<const ROUNDED_SUM: bool>(x: &[f32], offset: i32, out: &mut [Q8Block]) {
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
        let sum: i32 = out.q.iter().map(|q| i32::from(*q)).sum();
        out.d = binary16::round(d);
        out.s = if ROUNDED_SUM { binary16::round(d * sum as f32) } else { 0.0 };
        out.start = [-offset * sum, 0];
    }
}

#[inline(always)]
fn super_blocks(x: &[f32], out: &mut [Q8Block]) {
    // The only K format without a minimum.
    let offset = unpack::offset(DType::Q6K);
    for (x, out) in x.as_chunks::<256>().0.iter().zip(out.as_chunks_mut::<8>().0) {
        let (mut high, mut low) = ([0.0f32; 16], [0.0f32; 16]);
        for x in x.as_chunks::<16>().0 {
            for i in 0..16 {
                high[i] = if x[i] > high[i] { x[i] } else { high[i] };
                // The smallest, with its sign turned.
                low[i] = if -x[i] > low[i] { -x[i] } else { low[i] };
            }
        }
        let (d, inverse) = super_scale(x, largest(high), -largest(low));
        for (x, out) in x.as_chunks::<32>().0.iter().zip(out) {
            for (q, x) in out.q.iter_mut().zip(x) {
                *q = nearest(x * inverse);
            }
            let half = |q: &[i8]| q.iter().map(|q| i32::from(*q)).sum::<i32>();
            let sums = [half(&out.q[..16]), half(&out.q[16..])];
            out.d = d;
            out.s = (sums[0] + sums[1]) as f32;
            out.start = sums.map(|sum| -offset * sum);
        }
    }
}

/// Factor that brings the largest magnitude to 127.
#[inline(always)]
pub(crate) fn inverse_of(amax: f32) -> f32 {
    if amax == 0.0 { 0.0 } else { 127.0 / amax }
}

/// The largest lane; by halves, so that no long chain is waited for.
#[inline(always)]
fn largest(lanes: [f32; 16]) -> f32 {
    let larger = |a: f32, b: f32| if a > b { a } else { b };
    let eight: [f32; 8] = std::array::from_fn(|i| larger(lanes[i], lanes[i + 8]));
    let four: [f32; 4] = std::array::from_fn(|i| larger(eight[i], eight[i + 4]));
    larger(larger(four[0], four[2]), larger(four[1], four[3]))
}

/// Scale and its inverse from the first value of the largest magnitude, sign included. `high` and
/// `low` are the largest and the smallest value, and 0.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::Isa;

    /// Rows of 256 values in which something can go wrong.
    fn rows() -> Vec<(&'static str, Vec<f32>)> {
        let of = |value: &dyn Fn(usize) -> f32| (0..256).map(value).collect::<Vec<f32>>();
        let noise = |i: usize| ((i * 2_654_435_761) >> 7 & 0xffff) as f32 / 32_768.0 - 1.0;
        vec![
            ("noise", of(&noise)),
            ("zeros", of(&|_| 0.0)),
            ("a block of zeros among others", of(&|i| if i / 32 == 3 { 0.0 } else { noise(i) })),
            ("negative only", of(&|i| -1.0 - noise(i))),
            (
                "halves between two integers",
                of(&|i| if i % 32 == 0 { 127.0 } else { i as f32 / 2.0 - 60.0 }),
            ),
            ("the largest is negative", of(&|i| if i == 200 { -4.0 } else { noise(i) })),
            (
                "two of one magnitude",
                of(&|i| {
                    if i % 31 == 0 {
                        2.0
                    } else if i % 37 == 0 {
                        -2.0
                    } else {
                        noise(i)
                    }
                }),
            ),
            ("subnormal", of(&|i| noise(i) * 1e-40)),
            ("a scale that binary16 rounds to nothing", of(&|i| noise(i) * 1e-7)),
            ("a scale that binary16 has as a subnormal", of(&|i| noise(i) * 1e-3)),
            ("a scale beyond binary16", of(&|i| noise(i) * 1e9)),
        ]
    }

    #[test]
    fn a_row_is_rounded_otherwise_on_another_isa() {
        for isa in Isa::available() {
            for kind in
                [QuantScheme::Q8_0(8), QuantScheme::Q8_0(128), QuantScheme::Q8_1, QuantScheme::Q8K]
            {
                for (what, x) in rows() {
                    let mut want = [Q8Block::default(); 8];
                    let mut found = want;
                    row(&x, kind, &mut want);
                    (isa.kernels().quantize)(&x, kind, &mut found);
                    let bits = |b: &Q8Block| (b.q, b.d.to_bits(), b.s.to_bits(), b.start);
                    let (want, found) = (want.each_ref().map(bits), found.each_ref().map(bits));
                    assert_eq!(found, want, "{}: {kind:?} of {what}", isa.name());
                }
            }
        }
    }
}
