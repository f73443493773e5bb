//! Q8_0: 8 bits, blocks of 32 with a binary16 scale; value = d · q with q signed.

use super::block::{BlockScales, Integers, Scales};
use super::naive::{half_at, magnitude, steps};
use super::{ActivationBlocks, Places, Quantised};
use half::f16;

/// The format Q8_0.
#[derive(Clone, Copy, Debug)]
pub struct Q8_0;

impl Quantised for Q8_0 {
    const NAME: &'static str = "Q8_0";
    const GGUF_ID: u32 = 8;
    const LEN: usize = 32;
    const BYTES: usize = 34;
    const BITS: usize = 8;
    const SCALES: Scales = Scales::Plain;
    const ZERO_POINT: i32 = 128;
    const ACTIVATIONS: ActivationBlocks = ActivationBlocks::Q8_0;
    const PLACES: Places = Places::Bytes { at: 2 };

    #[inline(always)]
    fn integers(stored: &[u8], q: &mut Integers) {
        if let (Some(s), Some(q)) = (stored[2..].first_chunk::<32>(), q.first_chunk_mut::<32>()) {
            for i in 0..32 {
                q[i] = s[i] ^ 0x80;
            }
        }
    }

    #[inline(always)]
    fn scales(stored: &[u8]) -> BlockScales {
        BlockScales::at(stored, 0)
    }

    fn value(b: &[u8], i: usize) -> f32 {
        half_at(b, 0) * f32::from(b[2 + i].cast_signed())
    }

    fn quantize(x: &[f32]) -> Vec<u8> {
        let d = f16::from_f32(magnitude(x) / 127.0);
        let q = x.iter().map(|x| steps(*x, d.to_f32(), -127.0, 127.0) as i8 as u8);
        d.to_le_bytes().into_iter().chain(q).collect()
    }
}
