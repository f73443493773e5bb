//! TQ2_0: 2 bits, blocks of 256 with one binary16 scale; value = d · (q − 1), which is −d, 0 or d in files that are made so.

use super::block::{BlockScales, Integers, Scales, two_bits};
use super::naive::{half_at, magnitude, steps, two_bit_bytes, two_bits_at};
use super::{ActivationBlocks, Places, Quantised};
use half::f16;

/// The format TQ2_0.
#[derive(Clone, Copy, Debug)]
pub struct Tq2_0;

impl Quantised for Tq2_0 {
    const NAME: &'static str = "TQ2_0";
    const GGUF_ID: u32 = 35;
    const LEN: usize = 256;
    const BYTES: usize = 66;
    const BITS: usize = 2;
    const SCALES: Scales = Scales::Signed;
    const ZERO_POINT: i32 = 1;
    const ACTIVATIONS: ActivationBlocks = ActivationBlocks::Q8K;
    const PLACES: Places = Places::Scattered { values: 256 };

    #[inline(always)]
    fn integers(stored: &[u8], q: &mut Integers) {
        two_bits(&stored[..64], q);
    }

    /// The groups share the scale, so their factors are 1.
    #[inline(always)]
    fn scales(stored: &[u8]) -> BlockScales {
        BlockScales { factors: [1; 16], ..BlockScales::at(stored, 64) }
    }

    fn value(b: &[u8], i: usize) -> f32 {
        half_at(b, 64) * (two_bits_at(b, i) as f32 - 1.0)
    }

    fn quantize(x: &[f32]) -> Vec<u8> {
        let d = f16::from_f32(magnitude(x));
        let q = x.iter().map(|x| (steps(*x, d.to_f32(), -1.0, 1.0) + 1.0) as u8);
        let q: Vec<u8> = q.collect();
        [two_bit_bytes(&q), d.to_le_bytes().to_vec()].concat()
    }
}
