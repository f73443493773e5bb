//! IQ4_XS: 4 bits that stand for the values of a table, blocks of 8 groups of 32 whose scales have 6 bits; value = d · (s − 32) · t\[q\].

use super::block::{BlockScales, Integers, Scales, half_bits, nibbles};
use super::iq4_nl::TABLE;
use super::naive::{half_at, magnitude, nearest_code, nibble, steps};
use super::storable::{Storable, put_half, put_nibbles};
use super::{ActivationBlocks, Places, Quantised};
use half::f16;

/// The format IQ4_XS.
#[derive(Clone, Copy, Debug)]
pub struct Iq4Xs;

impl Quantised for Iq4Xs {
    const NAME: &'static str = "IQ4_XS";
    const GGUF_ID: u32 = 23;
    const LEN: usize = 256;
    const BYTES: usize = 136;
    const BITS: usize = 4;
    const TABLE: Option<&'static [i8; 16]> = Some(&TABLE);
    const SCALES: Scales = Scales::Signed;
    const ACTIVATIONS: ActivationBlocks = ActivationBlocks::Q8K;
    const PLACES: Places = Places::NibbleGroups { at: 8 };

    #[inline(always)]
    fn integers(stored: &[u8], q: &mut Integers) {
        for (from, to) in stored[8..].chunks_exact(16).zip(q.chunks_exact_mut(32)) {
            nibbles(from, to);
        }
    }

    #[inline(always)]
    fn scales(stored: &[u8]) -> BlockScales {
        let mut all = BlockScales::at(stored, 0);
        let high = half_bits(stored, 2);
        for g in 0..8 {
            let low = stored[4 + g / 2] >> (4 * (g % 2)) & 15;
            let factor = low | ((high >> (2 * g) & 3) as u8) << 4;
            all.factors[g] = factor.wrapping_sub(32);
        }
        all
    }

    fn value(b: &[u8], i: usize) -> f32 {
        let g = i / 32;
        let low = (b[4 + g / 2] >> (4 * (g % 2))) & 15;
        let high = (u16::from_le_bytes([b[2], b[3]]) >> (2 * g)) & 3;
        let factor = f32::from(low) + 16.0 * f32::from(high) - 32.0;
        half_at(b, 0) * factor * f32::from(TABLE[nibble(&b[8 + 16 * g..], i % 32) as usize])
    }

    fn quantize(x: &[f32]) -> Vec<u8> {
        let wanted = x.chunks(32).map(|x| magnitude(x) / 127.0);
        let d = f16::from_f32(wanted.clone().fold(0.0, f32::max) / 31.0);
        let mut scales = BlockScales { scale: d.to_bits(), ..BlockScales::default() };
        for (to, s) in scales.factors.iter_mut().zip(wanted) {
            *to = steps(s, d.to_f32(), 0.0, 31.0) as u8;
        }
        let q = x
            .iter()
            .enumerate()
            .map(|(i, x)| nearest_code(&TABLE, *x, d.to_f32() * f32::from(scales.factors[i / 32])));
        Iq4Xs::stored(q, &scales)
    }
}

impl Storable for Iq4Xs {
    const FACTOR_BITS: u32 = 6;

    fn store(q: &Integers, scales: &BlockScales, to: &mut [u8]) {
        put_half(scales.scale, to, 0);
        let (mut low, mut high) = ([0; 4], 0);
        for (g, factor) in scales.factors[..8].iter().enumerate() {
            let s = factor.wrapping_add(32);
            low[g / 2] |= (s & 15) << (4 * (g % 2));
            high |= u16::from(s >> 4 & 3) << (2 * g);
        }
        put_half(high, to, 2);
        to[4..8].copy_from_slice(&low);
        for (q, to) in q.as_chunks::<32>().0.iter().zip(to[8..].chunks_exact_mut(16)) {
            put_nibbles(q, to);
        }
    }
}
