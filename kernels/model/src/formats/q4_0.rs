//! Q4_0: 4 bits, blocks of 32 with a binary16 scale; value = d · (q − 8).

use super::block::{BlockScales, Integers, Scales, nibbles};
use super::naive::{half_at, nibble, small};
use super::storable::{Storable, put_half, put_nibbles};
use super::{ActivationBlocks, Places, Quantised};

/// The format Q4_0.
#[derive(Clone, Copy, Debug)]
pub struct Q4_0;

impl Quantised for Q4_0 {
    const NAME: &'static str = "Q4_0";
    const GGUF_ID: u32 = 2;
    const LEN: usize = 32;
    const BYTES: usize = 18;
    const BITS: usize = 4;
    const SCALES: Scales = Scales::Plain;
    const ZERO_POINT: i32 = 8;
    const ACTIVATIONS: ActivationBlocks = ActivationBlocks::Q8_0;
    const PLACES: Places = Places::Nibbles { at: 2 };

    #[inline(always)]
    fn integers(stored: &[u8], q: &mut Integers) {
        nibbles(&stored[2..], q);
    }

    #[inline(always)]
    fn scales(stored: &[u8]) -> BlockScales {
        BlockScales::at(stored, 0)
    }

    fn value(b: &[u8], i: usize) -> f32 {
        half_at(b, 0) * (nibble(&b[2..], i) as f32 - 8.0)
    }

    fn quantize(x: &[f32]) -> Vec<u8> {
        small::<Q4_0>(x)
    }
}

impl Storable for Q4_0 {
    fn store(q: &Integers, scales: &BlockScales, to: &mut [u8]) {
        put_half(scales.scale, to, 0);
        put_nibbles(q, &mut to[2..]);
    }
}
