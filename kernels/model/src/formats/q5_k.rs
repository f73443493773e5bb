//! Q5_K: 5 bits, blocks of 8 groups of 32 whose scales and minimums have 6 bits; value = d · s · q − dmin · m.

use super::block::{BlockScales, Integers, Scales, group_nibbles, super_scales};
use super::naive::{k_block, k_nibble, k_scale};
use super::storable::{Storable, put_group_bits, put_group_nibbles, put_super_scales};
use super::{ActivationBlocks, Places, Quantised};

/// The format Q5_K.
#[derive(Clone, Copy, Debug)]
pub struct Q5K;

impl Quantised for Q5K {
    const NAME: &'static str = "Q5_K";
    const GGUF_ID: u32 = 13;
    const LEN: usize = 256;
    const BYTES: usize = 176;
    const BITS: usize = 5;
    const SCALES: Scales = Scales::Super;
    const ZERO_POINT: i32 = 0;
    const ACTIVATIONS: ActivationBlocks = ActivationBlocks::Q8K;
    const PLACES: Places = Places::GroupFifths { at: 16 };

    #[inline(always)]
    fn integers(stored: &[u8], q: &mut Integers) {
        group_nibbles(&stored[48..], q);
        for (j, q) in q.as_chunks_mut::<32>().0.iter_mut().enumerate() {
            for (q, high) in q.iter_mut().zip(&stored[16..48]) {
                *q |= (high >> j & 1) << 4;
            }
        }
    }

    #[inline(always)]
    fn scales(stored: &[u8]) -> BlockScales {
        super_scales(stored)
    }

    fn value(b: &[u8], i: usize) -> f32 {
        let (scale, min) = k_scale(b, i / 32);
        let high = u32::from(b[16 + i % 32] >> (i / 32)) & 1;
        scale * (k_nibble(&b[48..], i) + 16 * high) as f32 - min
    }

    fn quantize(x: &[f32]) -> Vec<u8> {
        k_block::<Q5K>(x)
    }
}

impl Storable for Q5K {
    const FACTOR_BITS: u32 = 6;

    fn store(q: &Integers, scales: &BlockScales, to: &mut [u8]) {
        put_super_scales(scales, to);
        put_group_bits(q, 4, &mut to[16..]);
        put_group_nibbles(q, &mut to[48..]);
    }
}
