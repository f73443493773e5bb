//! Q2_0: 2 bits, blocks of 64 with one binary16 scale; value = d · (q − 1).

use super::block::{BlockScales, Integers, Scales};
use super::naive::{half_at, magnitude, steps};
use super::{ActivationBlocks, Places, Quantised};
use half::f16;

/// The format Q2_0.
#[derive(Clone, Copy, Debug)]
pub struct Q2_0;

impl Quantised for Q2_0 {
    const NAME: &'static str = "Q2_0";
    const GGUF_ID: u32 = 42;
    const LEN: usize = 64;
    const BYTES: usize = 18;
    const BITS: usize = 2;
    const SCALES: Scales = Scales::Plain;
    const ZERO_POINT: i32 = 1;
    const ACTIVATIONS: ActivationBlocks = ActivationBlocks::Q8_0;
    const PLACES: Places = Places::Scattered { values: 64 };

    /// Four neighbours are a byte, from its lowest bits on.
    #[inline(always)]
    fn integers(stored: &[u8], q: &mut Integers) {
        for (byte, q) in stored[2..18].iter().zip(q.as_chunks_mut::<4>().0) {
            for (i, q) in q.iter_mut().enumerate() {
                *q = byte >> (2 * i) & 3;
            }
        }
    }

    #[inline(always)]
    fn scales(stored: &[u8]) -> BlockScales {
        BlockScales::at(stored, 0)
    }

    fn value(b: &[u8], i: usize) -> f32 {
        half_at(b, 0) * (f32::from(b[2 + i / 4] >> (i % 4 * 2) & 3) - 1.0)
    }

    fn quantize(x: &[f32]) -> Vec<u8> {
        let d = f16::from_f32(magnitude(x));
        let q = x.iter().map(|x| (steps(*x, d.to_f32(), -1.0, 2.0) + 1.0) as u8);
        let q: Vec<u8> = q.collect();
        let bytes = q.chunks(4).map(|q| q[0] | q[1] << 2 | q[2] << 4 | q[3] << 6);
        let bytes: Vec<u8> = bytes.collect();
        [d.to_le_bytes().to_vec(), bytes].concat()
    }
}
