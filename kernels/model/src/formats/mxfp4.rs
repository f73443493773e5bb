//! MXFP4: 4-bit floats, blocks of 32 with a power of two as scale (OCP Microscaling Formats 1.0).

use super::block::{BlockScales, Integers, Scales, nibbles};
use super::naive::{magnitude, nearest_code, nibble};
use super::storable::{Storable, put_nibbles};
use super::{ActivationBlocks, Places, Quantised};

/// Twice what the integers stand for: floats of one sign bit, two bits of exponent and one of mantissa.
pub(super) const TABLE: [i8; 16] = [0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12];

/// The format MXFP4.
#[derive(Clone, Copy, Debug)]
pub struct Mxfp4;

impl Quantised for Mxfp4 {
    const NAME: &'static str = "MXFP4";
    const GGUF_ID: u32 = 39;
    const LEN: usize = 32;
    const BYTES: usize = 17;
    const BITS: usize = 4;
    const TABLE: Option<&'static [i8; 16]> = Some(&TABLE);
    const SCALES: Scales = Scales::Power;
    const ZEROS: Option<&'static [u8]> =
        Some(&[127, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    const ACTIVATIONS: ActivationBlocks = ActivationBlocks::Q8_0;
    const PLACES: Places = Places::Nibbles { at: 1 };

    #[inline(always)]
    fn integers(stored: &[u8], q: &mut Integers) {
        nibbles(&stored[1..], q);
    }

    #[inline(always)]
    fn scales(stored: &[u8]) -> BlockScales {
        BlockScales { scale: u16::from(stored[0]), ..BlockScales::default() }
    }

    fn value(b: &[u8], i: usize) -> f32 {
        let power = (f64::from(b[0]) - 127.0).exp2();
        (power * f64::from(TABLE[nibble(&b[1..], i) as usize]) / 2.0) as f32
    }

    fn quantize(x: &[f32]) -> Vec<u8> {
        // The largest value is 6 · 2^(exponent − 127).
        let largest = magnitude(x);
        let exponent = match largest > 0.0 {
            true => (f64::from(largest).log2().floor() - 2.0 + 127.0).clamp(0.0, 254.0),
            false => 0.0,
        };
        let d = ((exponent - 128.0).exp2()) as f32;
        let q = x.iter().map(|x| nearest_code(&TABLE, *x, d));
        Mxfp4::stored(q, &BlockScales { scale: exponent as u16, ..BlockScales::default() })
    }
}

impl Storable for Mxfp4 {
    fn store(q: &Integers, scales: &BlockScales, to: &mut [u8]) {
        to[0] = scales.scale as u8;
        put_nibbles(q, &mut to[1..]);
    }
}
