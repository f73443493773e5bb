//! IQ4_NL: 4 bits that stand for the values of a table, blocks of 32 with a binary16 scale; value = d · t\[q\].

use super::block::{BlockScales, Integers, Scales, nibbles};
use super::naive::{half_at, magnitude, nearest_code, nibble};
use super::storable::{Storable, put_half, put_nibbles};
use super::{ActivationBlocks, Places, Quantised};
use half::f16;

/// What the integers stand for: denser near 0, where most weights are.
pub(super) const TABLE: [i8; 16] =
    [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113];

/// The format IQ4_NL.
#[derive(Clone, Copy, Debug)]
pub struct Iq4Nl;

impl Quantised for Iq4Nl {
    const NAME: &'static str = "IQ4_NL";
    const GGUF_ID: u32 = 20;
    const LEN: usize = 32;
    const BYTES: usize = 18;
    const BITS: usize = 4;
    const TABLE: Option<&'static [i8; 16]> = Some(&TABLE);
    const SCALES: Scales = Scales::Plain;
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
        half_at(b, 0) * f32::from(TABLE[nibble(&b[2..], i) as usize])
    }

    fn quantize(x: &[f32]) -> Vec<u8> {
        let d = f16::from_f32(magnitude(x) / 127.0);
        let q = x.iter().map(|x| nearest_code(&TABLE, *x, d.to_f32()));
        Iq4Nl::stored(q, &BlockScales { scale: d.to_bits(), ..BlockScales::default() })
    }
}

impl Storable for Iq4Nl {
    fn store(q: &Integers, scales: &BlockScales, to: &mut [u8]) {
        put_half(scales.scale, to, 0);
        put_nibbles(q, &mut to[2..]);
    }
}
