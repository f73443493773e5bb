//! IQ1_M: runs of 8 values of a grid of 2048 entries, each moved up or down by an eighth, blocks of 16 halves of groups whose scales
//! have 3 bits; value = d · (2 · s + 1) · (g ± 1/8), where g is −1, 0 or 1. The block's scale is in the upper bits of the others.

use super::block::{BlockScales, Integers, Scales, half_bits};
use super::grids::{Limits, codes, odd_scales, scaled};
use super::iq1_s::{TABLE, distance, entry, moved, nearest};
use super::{ActivationBlocks, Places, Quantised};
use half::f16;

/// The format IQ1_M.
#[derive(Clone, Copy, Debug)]
pub struct Iq1M;

/// Of run `r`: the upper 3 bits of its index, and whether it is moved down.
#[inline(always)]
fn upper(b: &[u8], r: usize) -> u8 {
    b[32 + r / 2] >> (4 * (r % 2))
}

/// The scale of a block: the upper 4 bits of 4 words, from its lowest on.
#[inline(always)]
fn scale_bits(b: &[u8]) -> u16 {
    (0..4).fold(0, |bits, word| bits | half_bits(b, 48 + 2 * word) >> 12 << (4 * word))
}

impl Quantised for Iq1M {
    const NAME: &'static str = "IQ1_M";
    const GGUF_ID: u32 = 29;
    const LEN: usize = 256;
    const BYTES: usize = 56;
    const BITS: usize = 3;
    const TABLE: Option<&'static [i8; 16]> = Some(&TABLE);
    const SCALES: Scales = Scales::Halves;
    const UNIT: f32 = 0.125;
    const ACTIVATIONS: ActivationBlocks = ActivationBlocks::Q8K;
    const PLACES: Places = Places::Scattered { values: 256 };

    #[inline(always)]
    fn integers(stored: &[u8], q: &mut Integers) {
        for (r, q) in q.as_chunks_mut::<8>().0.iter_mut().enumerate() {
            let upper = upper(stored, r);
            let down = if upper & 8 == 8 { 0xff } else { 0 };
            codes::<8>(entry(stored[r], u16::from(upper)), down, q);
        }
    }

    #[inline(always)]
    fn scales(stored: &[u8]) -> BlockScales {
        let mut all = BlockScales { scale: scale_bits(stored), ..BlockScales::default() };
        for (j, to) in all.factors.iter_mut().enumerate() {
            *to = 2 * (half_bits(stored, 48 + j / 4 * 2) >> (3 * (j % 4)) & 7) as u8 + 1;
        }
        all
    }

    fn value(b: &[u8], i: usize) -> f32 {
        let word = |at: usize| u16::from_le_bytes([b[48 + 2 * at], b[49 + 2 * at]]);
        let d = (0..4).map(|at| word(at) / 4096 * [1, 16, 256, 4096][at]).sum();
        let s = word(i / 64) >> (i / 16 % 4 * 3) & 7;
        let both = b[32 + i / 16];
        let upper = if i % 16 < 8 { both % 16 } else { both / 16 };
        let entry = entry(b[i / 8], u16::from(upper % 8));
        f16::from_bits(d).to_f32() * f32::from(2 * s + 1) * moved(entry, i % 8, upper >= 8)
    }

    fn quantize(x: &[f32]) -> Vec<u8> {
        let scales = odd_scales(x, 16, Limits { unit: 1.0, s_max: 7, largest: 1.125 });
        let (mut low, mut high) = (Vec::new(), vec![0u8; 16]);
        for (r, x) in x.chunks(8).enumerate() {
            let x = scaled(x, scales.spans[r / 2]);
            let error = |is_down| distance(&x, nearest(&x, is_down), is_down);
            let is_down = error(true) < error(false);
            let at = nearest(&x, is_down);
            low.push(at as u8);
            high[r / 2] |= ((at >> 8) as u8 | u8::from(is_down) << 3) << (4 * (r % 2));
        }
        let words = scales.s.chunks(4).enumerate().flat_map(|(word, four)| {
            let four = four.iter().enumerate();
            let bits = four.fold(0, |bits, (j, s)| bits | u16::from(*s) << (3 * j));
            (bits | scales.d.to_bits() >> (4 * word) << 12).to_le_bytes()
        });
        let words: Vec<u8> = words.collect();
        [low, high, words].concat()
    }
}
