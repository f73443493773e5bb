//! Q3_K: 3 bits, blocks of 16 halves of groups whose scales have 6 bits; value = d · (s − 32) · (q − 4).

use super::block::{BlockScales, Integers, Scales, two_bits};
use super::naive::{half_at, magnitude, steps, two_bits_at};
use super::storable::{Storable, put_group_bits, put_half, put_two_bits};
use super::{ActivationBlocks, Places, Quantised};
use half::f16;

/// The format Q3_K.
#[derive(Clone, Copy, Debug)]
pub struct Q3K;

/// The factor of half group `j`, 6 bits: the low 4 are in 8 bytes, first in their low halves; the upper 2 in 4 bytes.
#[inline(always)]
fn factor(s: &[u8], j: usize) -> u8 {
    let low = s[j % 8] >> (4 * (j / 8)) & 15;
    low | (s[8 + j % 4] >> (2 * (j / 4)) & 3) << 4
}

impl Quantised for Q3K {
    const NAME: &'static str = "Q3_K";
    const GGUF_ID: u32 = 11;
    const LEN: usize = 256;
    const BYTES: usize = 110;
    const BITS: usize = 3;
    const SCALES: Scales = Scales::Halves;
    const ZERO_POINT: i32 = 4;
    const ACTIVATIONS: ActivationBlocks = ActivationBlocks::Q8K;
    const PLACES: Places = Places::Scattered { values: 256 };

    #[inline(always)]
    fn integers(stored: &[u8], q: &mut Integers) {
        two_bits(&stored[32..96], q);
        for (g, q) in q.as_chunks_mut::<32>().0.iter_mut().enumerate() {
            for (q, high) in q.iter_mut().zip(&stored[..32]) {
                *q |= (high >> g & 1) << 2;
            }
        }
    }

    #[inline(always)]
    fn scales(stored: &[u8]) -> BlockScales {
        let mut all = BlockScales::at(stored, 108);
        for (j, to) in all.factors.iter_mut().enumerate() {
            *to = factor(&stored[96..108], j).wrapping_sub(32);
        }
        all
    }

    fn value(b: &[u8], i: usize) -> f32 {
        let (s, j) = (&b[96..108], i / 16);
        let low = if j < 8 { s[j] & 15 } else { s[j - 8] >> 4 };
        let high = (s[8 + j % 4] >> (2 * (j / 4))) & 3;
        let scale = half_at(b, 108) * (f32::from(low) + 16.0 * f32::from(high) - 32.0);
        let third = u32::from(b[i % 32] >> (i / 32)) & 1;
        scale * ((two_bits_at(&b[32..], i) + 4 * third) as f32 - 4.0)
    }

    fn quantize(x: &[f32]) -> Vec<u8> {
        let wanted = x.chunks(16).map(|x| magnitude(x) / 3.5);
        let d = f16::from_f32(wanted.clone().fold(0.0, f32::max) / 31.0);
        let mut scales = BlockScales { scale: d.to_bits(), ..BlockScales::default() };
        for (to, s) in scales.factors.iter_mut().zip(wanted) {
            *to = steps(s, d.to_f32(), 0.0, 31.0) as u8;
        }
        let q = x.iter().enumerate().map(|(i, x)| {
            let scale = d.to_f32() * f32::from(scales.factors[i / 16]);
            (steps(*x, scale, -4.0, 3.0) + 4.0) as u8
        });
        Q3K::stored(q, &scales)
    }
}

impl Storable for Q3K {
    const FACTOR_BITS: u32 = 6;

    fn store(q: &Integers, scales: &BlockScales, to: &mut [u8]) {
        put_group_bits(q, 2, to);
        put_two_bits(q, &mut to[32..96]);
        let s = scales.factors.map(|factor| factor.wrapping_add(32));
        for j in 0..8 {
            to[96 + j] = s[j] & 15 | (s[j + 8] & 15) << 4;
        }
        for j in 0..4 {
            to[104 + j] = (0..4).fold(0, |byte, k| byte | (s[j + 4 * k] >> 4 & 3) << (2 * k));
        }
        put_half(scales.scale, to, 108);
    }
}
