//! Parts of the naive references of formats, which take one value at a time.

use super::block::BlockScales;
use super::storable::Storable;
use half::f16;

/// A binary16 in stored bytes.
pub(super) fn half_at(block: &[u8], at: usize) -> f32 {
    f16::from_le_bytes([block[at], block[at + 1]]).to_f32()
}

/// Value `i` of 32 in 16 bytes: values 0 to 15 are the low nibbles.
pub(super) fn nibble(b: &[u8], i: usize) -> u32 {
    u32::from(if i < 16 { b[i] & 15 } else { b[i - 16] >> 4 })
}

/// Bit `i` of some bytes.
pub(super) fn bit(b: &[u8], i: usize) -> u32 {
    u32::from(b[i / 8] >> (i % 8)) & 1
}

/// Value `i` of 256 in 128 bytes: each 32 bytes hold 32 values as low nibbles, then 32 as high ones.
pub(super) fn k_nibble(b: &[u8], i: usize) -> u32 {
    let byte = b[i / 64 * 32 + i % 32];
    u32::from(if i % 64 < 32 { byte & 15 } else { byte >> 4 })
}

/// Value `i` of 256 in 64 bytes: each 32 bytes hold 128 values, two bits of each 32 of them, from the lowest on.
pub(super) fn two_bits_at(b: &[u8], i: usize) -> u32 {
    u32::from(b[i / 128 * 32 + i % 32] >> (2 * (i % 128 / 32))) & 3
}

/// The low two bits of 256 values, as [`two_bits_at`] reads them.
pub(super) fn two_bit_bytes(q: &[u8]) -> Vec<u8> {
    let byte = |half: &[u8], i: usize| (0..4).fold(0, |b, j| b | (half[32 * j + i] & 3) << (2 * j));
    q.chunks(128).flat_map(|half| (0..32).map(move |i| byte(half, i))).collect()
}

/// The index of the value of a table that is nearest to `x / d`.
pub(super) fn nearest_code(table: &[i8; 16], x: f32, d: f32) -> u8 {
    let wanted = if d == 0.0 { 0.0 } else { x / d };
    let distance = |code: &u8| (f32::from(table[usize::from(*code)]) - wanted).abs();
    let codes = 0..table.len() as u8;
    codes.min_by(|a, b| distance(a).total_cmp(&distance(b))).unwrap_or(0)
}

/// Scale and minimum of sub-block `j` of a Q4_K or Q5_K super-block.
pub(super) fn k_scale(b: &[u8], j: usize) -> (f32, f32) {
    let s = &b[4..16];
    let (scale, min) = if j < 4 {
        (s[j] & 63, s[j + 4] & 63)
    } else {
        (s[j + 4] & 15 | (s[j - 4] >> 6) << 4, s[j + 4] >> 4 | (s[j] >> 6) << 4)
    };
    (half_at(b, 0) * f32::from(scale), half_at(b, 2) * f32::from(min))
}

/// The nearest number of steps of `d`, within limits.
pub(super) fn steps(x: f32, d: f32, low: f32, high: f32) -> f32 {
    if d == 0.0 { 0.0 } else { (x / d).round().clamp(low, high) }
}

/// The largest magnitude.
pub(super) fn magnitude(x: &[f32]) -> f32 {
    x.iter().fold(0.0, |m, x| m.max(x.abs()))
}

fn extremes(x: &[f32]) -> (f32, f32) {
    x.iter().fold((f32::MAX, f32::MIN), |(low, high), x| (low.min(*x), high.max(*x)))
}

/// A block of 32 values in 4 or 5 bits; formats without minimums are symmetric.
pub(super) fn small<F: Storable>(x: &[f32]) -> Vec<u8> {
    let (low, high) = extremes(x);
    let (q_max, half_range) = (((1 << F::BITS) - 1) as f32, (1 << F::BITS >> 1) as f32);
    let minimum = f16::from_f32(if F::SCALES.has_minimum() { low } else { 0.0 });
    let (d, m) = if F::SCALES.has_minimum() {
        (f16::from_f32((high - minimum.to_f32()) / q_max), minimum.to_f32())
    } else {
        let d = f16::from_f32(low.abs().max(high.abs()) / half_range);
        (d, -half_range * d.to_f32())
    };
    let q = x.iter().map(|x| steps(x - m, d.to_f32(), 0.0, q_max) as u8);
    let (scale, minimum) = (d.to_bits(), minimum.to_bits());
    F::stored(q, &BlockScales { scale, minimum, ..BlockScales::default() })
}

/// A Q4_K or Q5_K block.
pub(super) fn k_block<F: Storable>(x: &[f32]) -> Vec<u8> {
    let q_max = ((1 << F::BITS) - 1) as f32;
    let ranges: Vec<_> = x.chunks(32).map(extremes).collect();
    let mins = ranges.iter().map(|(low, _)| (-low).max(0.0));
    let scales = ranges.iter().map(|(low, high)| (high - low.min(0.0)).max(0.0) / q_max);
    let d = f16::from_f32(scales.clone().fold(0.0, f32::max) / 63.0);
    let dmin = f16::from_f32(mins.clone().fold(0.0, f32::max) / 63.0);
    let mut all =
        BlockScales { scale: d.to_bits(), minimum: dmin.to_bits(), ..BlockScales::default() };
    for (j, (s, m)) in scales.zip(mins).enumerate() {
        all.factors[j] = steps(s, d.to_f32(), 0.0, 63.0) as u8;
        all.minimums[j] = steps(m, dmin.to_f32(), 0.0, 63.0) as u8;
    }
    let q = x.iter().enumerate().map(|(i, x)| {
        let scale = d.to_f32() * f32::from(all.factors[i / 32]);
        let min = dmin.to_f32() * f32::from(all.minimums[i / 32]);
        steps(x + min, scale, 0.0, q_max) as u8
    });
    F::stored(q, &all)
}
