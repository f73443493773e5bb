//! Q5_1: 5 bits, blocks of 32 with a binary16 scale and minimum; value = d · q + m.

use super::block::{BlockScales, Integers, Scales, fifth_bits, half_bits, nibbles};
use super::naive::{bit, half_at, nibble, small};
use super::storable::{Storable, put_fifth_bits, put_half, put_nibbles};
use super::{ActivationBlocks, Places, Quantised};

/// The format Q5_1.
#[derive(Clone, Copy, Debug)]
pub struct Q5_1;

impl Quantised for Q5_1 {
    const NAME: &'static str = "Q5_1";
    const GGUF_ID: u32 = 7;
    const LEN: usize = 32;
    const BYTES: usize = 24;
    const BITS: usize = 5;
    const SCALES: Scales = Scales::Minimum;
    const ZERO_POINT: i32 = 0;
    const ACTIVATIONS: ActivationBlocks = ActivationBlocks::Q8_1;
    const PLACES: Places = Places::Fifths { at: 4 };

    #[inline(always)]
    fn integers(stored: &[u8], q: &mut Integers) {
        nibbles(&stored[8..], q);
        fifth_bits(&stored[4..], q);
    }

    #[inline(always)]
    fn scales(stored: &[u8]) -> BlockScales {
        let (scale, minimum) = (half_bits(stored, 0), half_bits(stored, 2));
        BlockScales { scale, minimum, ..BlockScales::default() }
    }

    fn value(b: &[u8], i: usize) -> f32 {
        let q = nibble(&b[8..], i) + 16 * bit(&b[4..], i);
        half_at(b, 0) * q as f32 + half_at(b, 2)
    }

    fn quantize(x: &[f32]) -> Vec<u8> {
        small::<Q5_1>(x)
    }
}

impl Storable for Q5_1 {
    fn store(q: &Integers, scales: &BlockScales, to: &mut [u8]) {
        put_half(scales.scale, to, 0);
        put_half(scales.minimum, to, 2);
        put_fifth_bits(q, &mut to[4..]);
        put_nibbles(q, &mut to[8..]);
    }
}
