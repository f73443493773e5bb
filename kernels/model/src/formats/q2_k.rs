//! Q2_K: 2 bits, blocks of 16 halves of groups whose scales and minimums have 4 bits; value = d · s · q − dmin · m.

use super::block::{BlockScales, Integers, Scales, half_bits, two_bits};
use super::naive::{half_at, steps, two_bits_at};
use super::storable::{Storable, put_half, put_two_bits};
use super::{ActivationBlocks, Places, Quantised};
use half::f16;

/// The format Q2_K.
#[derive(Clone, Copy, Debug)]
pub struct Q2K;

impl Quantised for Q2K {
    const NAME: &'static str = "Q2_K";
    const GGUF_ID: u32 = 10;
    const LEN: usize = 256;
    const BYTES: usize = 84;
    const BITS: usize = 2;
    const SCALES: Scales = Scales::SuperHalves;
    const ACTIVATIONS: ActivationBlocks = ActivationBlocks::Q8K;
    const PLACES: Places = Places::Scattered { values: 256 };

    #[inline(always)]
    fn integers(stored: &[u8], q: &mut Integers) {
        two_bits(&stored[16..80], q);
    }

    #[inline(always)]
    fn scales(stored: &[u8]) -> BlockScales {
        let mut all = BlockScales {
            scale: half_bits(stored, 80),
            minimum: half_bits(stored, 82),
            ..BlockScales::default()
        };
        for (j, both) in stored[..16].iter().enumerate() {
            (all.factors[j], all.minimums[j]) = (both & 15, both >> 4);
        }
        all
    }

    fn value(b: &[u8], i: usize) -> f32 {
        let scale = half_at(b, 80) * f32::from(b[i / 16] & 15);
        scale * two_bits_at(&b[16..], i) as f32 - half_at(b, 82) * f32::from(b[i / 16] >> 4)
    }

    fn quantize(x: &[f32]) -> Vec<u8> {
        let low = |x: &[f32]| x.iter().fold(0.0f32, |low, x| low.min(*x));
        let high = |x: &[f32]| x.iter().fold(0.0f32, |high, x| high.max(*x));
        let mins = x.chunks(16).map(|x| -low(x));
        let scales = x.chunks(16).map(|x| (high(x) - low(x)) / 3.0);
        let d = f16::from_f32(scales.clone().fold(0.0, f32::max) / 15.0);
        let dmin = f16::from_f32(mins.clone().fold(0.0, f32::max) / 15.0);
        let mut all =
            BlockScales { scale: d.to_bits(), minimum: dmin.to_bits(), ..BlockScales::default() };
        for (j, (s, m)) in scales.zip(mins).enumerate() {
            all.factors[j] = steps(s, d.to_f32(), 0.0, 15.0) as u8;
            all.minimums[j] = steps(m, dmin.to_f32(), 0.0, 15.0) as u8;
        }
        let q = x.iter().enumerate().map(|(i, x)| {
            let scale = d.to_f32() * f32::from(all.factors[i / 16]);
            steps(x + dmin.to_f32() * f32::from(all.minimums[i / 16]), scale, 0.0, 3.0) as u8
        });
        Q2K::stored(q, &all)
    }
}

impl Storable for Q2K {
    const FACTOR_BITS: u32 = 4;

    fn store(q: &Integers, scales: &BlockScales, to: &mut [u8]) {
        let factors = scales.factors.iter().zip(&scales.minimums);
        for (to, (factor, minimum)) in to.iter_mut().zip(factors) {
            *to = factor & 15 | minimum << 4;
        }
        put_two_bits(q, &mut to[16..]);
        put_half(scales.scale, to, 80);
        put_half(scales.minimum, to, 82);
    }
}
