//! Q6_K: 6 bits, blocks of 16 halves of groups whose scales have 8 bits; value = d · s · (q − 32).

use super::block::{BlockScales, Integers, Scales};
use super::naive::{half_at, magnitude, steps};
use super::storable::{Storable, put_half};
use super::{ActivationBlocks, Places, Quantised};
use half::f16;

/// The format Q6_K.
#[derive(Clone, Copy, Debug)]
pub struct Q6K;

impl Quantised for Q6K {
    const NAME: &'static str = "Q6_K";
    const GGUF_ID: u32 = 14;
    const LEN: usize = 256;
    const BYTES: usize = 210;
    const BITS: usize = 6;
    const SCALES: Scales = Scales::Halves;
    const ZERO_POINT: i32 = 32;
    const ACTIVATIONS: ActivationBlocks = ActivationBlocks::Q8K;
    const PLACES: Places = Places::Sixths { at: 0 };

    #[inline(always)]
    fn integers(stored: &[u8], q: &mut Integers) {
        for (half, q) in q.as_chunks_mut::<128>().0.iter_mut().enumerate() {
            let low = &stored[half * 64..][..64];
            let high = &stored[128 + half * 32..][..32];
            for i in 0..32 {
                q[i] = low[i] & 15 | (high[i] & 3) << 4;
                q[32 + i] = low[32 + i] & 15 | (high[i] >> 2 & 3) << 4;
                q[64 + i] = low[i] >> 4 | (high[i] >> 4 & 3) << 4;
                q[96 + i] = low[32 + i] >> 4 | (high[i] >> 6) << 4;
            }
        }
    }

    #[inline(always)]
    fn scales(stored: &[u8]) -> BlockScales {
        let mut all = BlockScales::at(stored, 208);
        all.factors.copy_from_slice(&stored[192..208]);
        all
    }

    fn value(b: &[u8], i: usize) -> f32 {
        let scale = half_at(b, 208) * f32::from(b[192 + i / 16].cast_signed());
        let (half, quarter, j) = (i / 128, i % 128 / 32, i % 32);
        let low = b[half * 64 + quarter % 2 * 32 + j];
        let low = if quarter < 2 { low & 15 } else { low >> 4 };
        let high = b[128 + half * 32 + j] >> (2 * quarter) & 3;
        scale * ((u32::from(low) | u32::from(high) << 4) as f32 - 32.0)
    }

    fn quantize(x: &[f32]) -> Vec<u8> {
        let wanted = x.chunks(16).map(|x| magnitude(x) / 31.0);
        let d = f16::from_f32(wanted.clone().fold(0.0, f32::max) / 127.0);
        let mut scales = BlockScales { scale: d.to_bits(), ..BlockScales::default() };
        for (to, s) in scales.factors.iter_mut().zip(wanted) {
            *to = steps(s, d.to_f32(), 0.0, 127.0) as u8;
        }
        let q = x.iter().enumerate().map(|(i, x)| {
            let scale = d.to_f32() * f32::from(scales.factors[i / 16]);
            (steps(*x, scale, -32.0, 31.0) + 32.0) as u8
        });
        Q6K::stored(q, &scales)
    }
}

impl Storable for Q6K {
    const FACTOR_BITS: u32 = 8;

    fn store(q: &Integers, scales: &BlockScales, to: &mut [u8]) {
        for (half, q) in q.as_chunks::<128>().0.iter().enumerate() {
            for i in 0..64 {
                to[64 * half + i] = q[i] & 15 | (q[64 + i] & 15) << 4;
            }
            for i in 0..32 {
                let top = |quarter: usize| (q[32 * quarter + i] >> 4 & 3) << (2 * quarter);
                to[128 + 32 * half + i] = top(0) | top(1) | top(2) | top(3);
            }
        }
        to[192..208].copy_from_slice(&scales.factors);
        put_half(scales.scale, to, 208);
    }
}
