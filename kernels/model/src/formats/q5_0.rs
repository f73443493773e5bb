//! Q5_0: 5 bits, blocks of 32 with a binary16 scale; value = d · (q − 16).

use super::block::{BlockScales, Integers, Scales, fifth_bits, nibbles};
use super::naive::{bit, half_at, nibble, small};
use super::storable::{Storable, put_fifth_bits, put_half, put_nibbles};
use super::{ActivationBlocks, Places, Quantised};

/// The format Q5_0.
#[derive(Clone, Copy, Debug)]
pub struct Q5_0;

impl Quantised for Q5_0 {
    const NAME: &'static str = "Q5_0";
    const GGUF_ID: u32 = 6;
    const LEN: usize = 32;
    const BYTES: usize = 22;
    const BITS: usize = 5;
    const SCALES: Scales = Scales::Plain;
    const ZERO_POINT: i32 = 16;
    const ACTIVATIONS: ActivationBlocks = ActivationBlocks::Q8_0;
    const PLACES: Places = Places::Fifths { at: 2 };

    #[inline(always)]
    fn integers(stored: &[u8], q: &mut Integers) {
        nibbles(&stored[6..], q);
        fifth_bits(&stored[2..], q);
    }

    #[inline(always)]
    fn scales(stored: &[u8]) -> BlockScales {
        BlockScales::at(stored, 0)
    }

    fn value(b: &[u8], i: usize) -> f32 {
        let q = nibble(&b[6..], i) + 16 * bit(&b[2..], i);
        half_at(b, 0) * (q as f32 - 16.0)
    }

    fn quantize(x: &[f32]) -> Vec<u8> {
        small::<Q5_0>(x)
    }
}

impl Storable for Q5_0 {
    fn store(q: &Integers, scales: &BlockScales, to: &mut [u8]) {
        put_half(scales.scale, to, 0);
        put_fifth_bits(q, &mut to[2..]);
        put_nibbles(q, &mut to[6..]);
    }
}
