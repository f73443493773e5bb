//! Naive conversion of weight formats, one value at a time.

use crate::quant::DType;
use half::{bf16, f16};

fn half_at(block: &[u8], at: usize) -> f32 {
    f16::from_le_bytes([block[at], block[at + 1]]).to_f32()
}

/// Values of the blocks in `bytes`, of format `dtype`; an incomplete last block is left out.
pub fn dequantize(dtype: DType, bytes: &[u8]) -> Vec<f32> {
    let blocks = bytes.chunks_exact(dtype.block_bytes());
    blocks.flat_map(|b| (0..dtype.block_len()).map(move |i| value(dtype, b, i))).collect()
}

fn value(dtype: DType, b: &[u8], i: usize) -> f32 {
    match dtype {
        DType::F32 => f32::from_le_bytes([b[0], b[1], b[2], b[3]]),
        DType::F16 => half_at(b, 0),
        DType::Bf16 => bf16::from_le_bytes([b[0], b[1]]).to_f32(),
        DType::Q4_0 => half_at(b, 0) * (nibble(&b[2..], i) as f32 - 8.0),
        DType::Q4_1 => half_at(b, 0) * nibble(&b[4..], i) as f32 + half_at(b, 2),
        DType::Q5_0 => {
            let q = nibble(&b[6..], i) + 16 * bit(&b[2..], i);
            half_at(b, 0) * (q as f32 - 16.0)
        }
        DType::Q5_1 => {
            let q = nibble(&b[8..], i) + 16 * bit(&b[4..], i);
            half_at(b, 0) * q as f32 + half_at(b, 2)
        }
        DType::Q8_0 => half_at(b, 0) * f32::from(b[2 + i].cast_signed()),
        DType::Q4K => {
            let (scale, min) = k_scale(b, i / 32);
            scale * k_nibble(&b[16..], i) as f32 - min
        }
        DType::Q5K => {
            let (scale, min) = k_scale(b, i / 32);
            let high = u32::from(b[16 + i % 32] >> (i / 32)) & 1;
            scale * (k_nibble(&b[48..], i) + 16 * high) as f32 - min
        }
        DType::Q6K => {
            let scale = half_at(b, 208) * f32::from(b[192 + i / 16].cast_signed());
            scale * (q6(b, i) as f32 - 32.0)
        }
    }
}

/// Value `i` of 32 in 16 bytes: values 0 to 15 are the low nibbles.
fn nibble(b: &[u8], i: usize) -> u32 {
    u32::from(if i < 16 { b[i] & 15 } else { b[i - 16] >> 4 })
}

fn bit(b: &[u8], i: usize) -> u32 {
    u32::from(b[i / 8] >> (i % 8)) & 1
}

/// Value `i` of 256 in 128 bytes: each 32 bytes hold 32 values as low nibbles, then 32 as high ones.
fn k_nibble(b: &[u8], i: usize) -> u32 {
    let byte = b[i / 64 * 32 + i % 32];
    u32::from(if i % 64 < 32 { byte & 15 } else { byte >> 4 })
}

/// Scale and minimum of sub-block `j` of a Q4_K or Q5_K super-block.
fn k_scale(b: &[u8], j: usize) -> (f32, f32) {
    let s = &b[4..16];
    let (scale, min) = if j < 4 {
        (s[j] & 63, s[j + 4] & 63)
    } else {
        (s[j + 4] & 15 | (s[j - 4] >> 6) << 4, s[j + 4] >> 4 | (s[j] >> 6) << 4)
    };
    (half_at(b, 0) * f32::from(scale), half_at(b, 2) * f32::from(min))
}

fn q6(b: &[u8], i: usize) -> u32 {
    let (half, quarter, j) = (i / 128, i % 128 / 32, i % 32);
    let low = b[half * 64 + quarter % 2 * 32 + j];
    let low = if quarter < 2 { low & 15 } else { low >> 4 };
    let high = b[128 + half * 32 + j] >> (2 * quarter) & 3;
    u32::from(low) | u32::from(high) << 4
}

/// Quantises `x` to `dtype` by the simplest rule: scales from the extremes of a block, values rounded
/// to the nearest step. An incomplete last block is left out.
pub fn quantize(dtype: DType, x: &[f32]) -> Vec<u8> {
    x.chunks_exact(dtype.block_len()).flat_map(|x| block(dtype, x)).collect()
}

fn block(dtype: DType, x: &[f32]) -> Vec<u8> {
    match dtype {
        DType::F32 => x[0].to_le_bytes().to_vec(),
        DType::F16 => f16::from_f32(x[0]).to_le_bytes().to_vec(),
        DType::Bf16 => bf16::from_f32(x[0]).to_le_bytes().to_vec(),
        DType::Q4_0 => small(x, 15, true),
        DType::Q4_1 => small(x, 15, false),
        DType::Q5_0 => small(x, 31, true),
        DType::Q5_1 => small(x, 31, false),
        DType::Q8_0 => {
            let d = f16::from_f32(x.iter().fold(0.0f32, |m, x| m.max(x.abs())) / 127.0);
            let q = x.iter().map(|x| steps(*x, d.to_f32(), -127.0, 127.0) as i8 as u8);
            d.to_le_bytes().into_iter().chain(q).collect()
        }
        DType::Q4K => k_block(x, 15),
        DType::Q5K => k_block(x, 31),
        DType::Q6K => q6_block(x),
    }
}

fn steps(x: f32, d: f32, low: f32, high: f32) -> f32 {
    if d == 0.0 { 0.0 } else { (x / d).round().clamp(low, high) }
}

fn extremes(x: &[f32]) -> (f32, f32) {
    x.iter().fold((f32::MAX, f32::MIN), |(low, high), x| (low.min(*x), high.max(*x)))
}

/// A block of 32 values in 4 or 5 bits; `symmetric` formats have no minimum.
fn small(x: &[f32], q_max: u32, symmetric: bool) -> Vec<u8> {
    let (low, high) = extremes(x);
    let half_range = (q_max / 2 + 1) as f32;
    let (d, m) = if symmetric {
        let d = f16::from_f32(low.abs().max(high.abs()) / half_range);
        (d, -half_range * d.to_f32())
    } else {
        let m = f16::from_f32(low);
        (f16::from_f32((high - m.to_f32()) / q_max as f32), m.to_f32())
    };
    let q = x.iter().map(|x| steps(x - m, d.to_f32(), 0.0, q_max as f32) as u32);
    let q: Vec<u32> = q.collect();
    let mut bytes = d.to_le_bytes().to_vec();
    if !symmetric {
        bytes.extend(f16::from_f32(m).to_le_bytes());
    }
    if q_max > 15 {
        let bits = q.iter().enumerate().fold(0u32, |bits, (i, q)| bits | (q >> 4) << i);
        bytes.extend(bits.to_le_bytes());
    }
    bytes.extend((0..16).map(|i| (q[i] & 15 | (q[16 + i] & 15) << 4) as u8));
    bytes
}

fn k_block(x: &[f32], q_max: u32) -> Vec<u8> {
    let ranges: Vec<_> = x.chunks(32).map(extremes).collect();
    let mins = ranges.iter().map(|(low, _)| (-low).max(0.0));
    let scales = ranges.iter().map(|(low, high)| (high - low.min(0.0)).max(0.0) / q_max as f32);
    let d = f16::from_f32(scales.clone().fold(0.0, f32::max) / 63.0);
    let dmin = f16::from_f32(mins.clone().fold(0.0, f32::max) / 63.0);
    let scales: Vec<u8> = scales.map(|s| steps(s, d.to_f32(), 0.0, 63.0) as u8).collect();
    let mins: Vec<u8> = mins.map(|m| steps(m, dmin.to_f32(), 0.0, 63.0) as u8).collect();
    let mut bytes = [d.to_le_bytes(), dmin.to_le_bytes()].concat();
    bytes.extend((0..4).map(|j| scales[j] | scales[j + 4] >> 4 << 6));
    bytes.extend((0..4).map(|j| mins[j] | mins[j + 4] >> 4 << 6));
    bytes.extend((0..4).map(|j| scales[j + 4] & 15 | (mins[j + 4] & 15) << 4));
    let q = x.iter().enumerate().map(|(i, x)| {
        let scale = d.to_f32() * f32::from(scales[i / 32]);
        let min = dmin.to_f32() * f32::from(mins[i / 32]);
        steps(x + min, scale, 0.0, q_max as f32) as u8
    });
    let q: Vec<u8> = q.collect();
    if q_max > 15 {
        bytes.extend((0..32).map(|i| (0..8).fold(0, |b, j| b | (q[32 * j + i] >> 4) << j)));
    }
    bytes.extend(q.chunks(64).flat_map(|q| (0..32).map(|i| q[i] & 15 | (q[32 + i] & 15) << 4)));
    bytes
}

fn q6_block(x: &[f32]) -> Vec<u8> {
    let wanted = x.chunks(16).map(|x| x.iter().fold(0.0f32, |m, x| m.max(x.abs())) / 31.0);
    let d = f16::from_f32(wanted.clone().fold(0.0, f32::max) / 127.0);
    let scales: Vec<u8> = wanted.map(|s| steps(s, d.to_f32(), 0.0, 127.0) as u8).collect();
    let q = x.iter().enumerate().map(|(i, x)| {
        let scale = d.to_f32() * f32::from(scales[i / 16]);
        (steps(*x, scale, -32.0, 31.0) + 32.0) as u8
    });
    let q: Vec<u8> = q.collect();
    let at = |half: usize, quarter: usize, j: usize| q[half * 128 + quarter * 32 + j];
    let low = (0..128).map(|i| {
        let (half, j) = (i / 64, i % 64);
        at(half, j / 32, j % 32) & 15 | (at(half, 2 + j / 32, j % 32) & 15) << 4
    });
    let high = (0..64).map(|i| {
        (0..4).fold(0, |b, quarter| b | at(i / 32, quarter, i % 32) >> 4 << (2 * quarter))
    });
    let low: Vec<u8> = low.chain(high).collect();
    [low, scales, d.to_le_bytes().to_vec()].concat()
}
