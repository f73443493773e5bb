//! Q4_1: 4 bits, blocks of 32 with a binary16 scale and minimum; value = d · q + m.

use super::block::{BlockScales, Integers, Scales, half_bits, nibbles};
use super::naive::{half_at, nibble, small};
use super::storable::{Storable, put_half, put_nibbles};
use super::{ActivationBlocks, Places, Quantised};

/// The format Q4_1.
#[derive(Clone, Copy, Debug)]
pub struct Q4_1;

impl Quantised for Q4_1 {
    const NAME: &'static str = "Q4_1";
    const GGUF_ID: u32 = 3;
    const LEN: usize = 32;
    const BYTES: usize = 20;
    const BITS: usize = 4;
    const SCALES: Scales = Scales::Minimum;
    const ZERO_POINT: i32 = 0;
    const ACTIVATIONS: ActivationBlocks = ActivationBlocks::Q8_1;
    const PLACES: Places = Places::Nibbles { at: 4 };

    #[inline(always)]
    fn integers(stored: &[u8], q: &mut Integers) {
        nibbles(&stored[4..], q);
    }

    #[inline(always)]
    fn scales(stored: &[u8]) -> BlockScales {
        let (scale, minimum) = (half_bits(stored, 0), half_bits(stored, 2));
        BlockScales { scale, minimum, ..BlockScales::default() }
    }

    fn value(b: &[u8], i: usize) -> f32 {
        half_at(b, 0) * nibble(&b[4..], i) as f32 + half_at(b, 2)
    }

    fn quantize(x: &[f32]) -> Vec<u8> {
        small::<Q4_1>(x)
    }
}

impl Storable for Q4_1 {
    fn store(q: &Integers, scales: &BlockScales, to: &mut [u8]) {
        put_half(scales.scale, to, 0);
        put_half(scales.minimum, to, 2);
        put_nibbles(q, &mut to[4..]);
    }
}
