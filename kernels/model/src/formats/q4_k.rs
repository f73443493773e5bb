//! Q4_K: 4 bits, blocks of 8 groups of 32 whose scales and minimums have 6 bits; value = d · s · q − dmin · m.

use super::block::{BlockScales, Integers, Scales, group_nibbles, super_scales};
use super::naive::{k_block, k_nibble, k_scale};
use super::storable::{Storable, put_group_nibbles, put_super_scales};
use super::{ActivationBlocks, Places, Quantised};

/// The format Q4_K.
#[derive(Clone, Copy, Debug)]
pub struct Q4K;

impl Quantised for Q4K {
    const NAME: &'static str = "Q4_K";
    const GGUF_ID: u32 = 12;
    const LEN: usize = 256;
    const BYTES: usize = 144;
    const BITS: usize = 4;
    const SCALES: Scales = Scales::Super;
    const ZERO_POINT: i32 = 0;
    const ACTIVATIONS: ActivationBlocks = ActivationBlocks::Q8K;
    const PLACES: Places = Places::GroupNibbles { at: 16 };

    #[inline(always)]
    fn integers(stored: &[u8], q: &mut Integers) {
        group_nibbles(&stored[16..], q);
    }

    #[inline(always)]
    fn scales(stored: &[u8]) -> BlockScales {
        super_scales(stored)
    }

    fn value(b: &[u8], i: usize) -> f32 {
        let (scale, min) = k_scale(b, i / 32);
        scale * k_nibble(&b[16..], i) as f32 - min
    }

    fn quantize(x: &[f32]) -> Vec<u8> {
        k_block::<Q4K>(x)
    }
}

impl Storable for Q4K {
    const FACTOR_BITS: u32 = 6;

    fn store(q: &Integers, scales: &BlockScales, to: &mut [u8]) {
        put_super_scales(scales, to);
        put_group_nibbles(q, &mut to[16..]);
    }
}
