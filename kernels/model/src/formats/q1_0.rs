//! Q1_0: signs, blocks of 128 with one binary16 scale; value = d or −d.

use super::block::{BlockScales, Integers, Scales};
use super::naive::{bit, half_at};
use super::{ActivationBlocks, Places, Quantised};
use half::f16;

/// The format Q1_0. Its integers are 0 and 2.
#[derive(Clone, Copy, Debug)]
pub struct Q1_0;

impl Quantised for Q1_0 {
    const NAME: &'static str = "Q1_0";
    const GGUF_ID: u32 = 41;
    const LEN: usize = 128;
    const BYTES: usize = 18;
    const BITS: usize = 2;
    const SCALES: Scales = Scales::Plain;
    const ZERO_POINT: i32 = 1;
    const ACTIVATIONS: ActivationBlocks = ActivationBlocks::Q8_0;
    const PLACES: Places = Places::Scattered { values: 128 };

    #[inline(always)]
    fn integers(stored: &[u8], q: &mut Integers) {
        for (byte, q) in stored[2..18].iter().zip(q.as_chunks_mut::<8>().0) {
            for (i, q) in q.iter_mut().enumerate() {
                *q = (byte >> i & 1) << 1;
            }
        }
    }

    #[inline(always)]
    fn scales(stored: &[u8]) -> BlockScales {
        BlockScales::at(stored, 0)
    }

    fn value(b: &[u8], i: usize) -> f32 {
        half_at(b, 0) * if bit(&b[2..], i) == 1 { 1.0 } else { -1.0 }
    }

    fn quantize(x: &[f32]) -> Vec<u8> {
        let mean = x.iter().map(|x| x.abs()).sum::<f32>() / x.len() as f32;
        let bits = x.chunks(8).map(|x| super::grids::signs(x, false) ^ 0xff);
        let bits: Vec<u8> = bits.collect();
        [f16::from_f32(mean).to_le_bytes().to_vec(), bits].concat()
    }
}
