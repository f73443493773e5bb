//! NVFP4: 4-bit floats, blocks of 64 whose quarters have scales that are floats of 8 bits (UE4M3). Files multiply products with such a
//! matrix by one more number, the tensor `.scale`.

use super::block::{BlockScales, Integers, Scales};
use super::mxfp4::TABLE;
use super::naive::{magnitude, nearest_code};
use super::{ActivationBlocks, Places, Quantised};

/// The byte that would be NaN. Its quarter is 0.
const NAN: u8 = 0x7f;

/// The format NVFP4.
#[derive(Clone, Copy, Debug)]
pub struct Nvfp4;

impl Quantised for Nvfp4 {
    const NAME: &'static str = "NVFP4";
    const GGUF_ID: u32 = 40;
    const LEN: usize = 64;
    const BYTES: usize = 36;
    const BITS: usize = 4;
    const TABLE: Option<&'static [i8; 16]> = Some(&TABLE);
    const SCALES: Scales = Scales::Minifloats;
    const ACTIVATIONS: ActivationBlocks = ActivationBlocks::Q8_0;
    const PLACES: Places = Places::Scattered { values: 64 };

    /// The 8 bytes of a quarter are its first 8 values, in their low halves, and its last 8.
    #[inline(always)]
    fn integers(stored: &[u8], q: &mut Integers) {
        let quarters = stored[4..36].as_chunks::<8>().0;
        for (from, q) in quarters.iter().zip(q.as_chunks_mut::<16>().0) {
            for i in 0..8 {
                (q[i], q[8 + i]) = (from[i] & 15, from[i] >> 4);
            }
        }
    }

    #[inline(always)]
    fn scales(stored: &[u8]) -> BlockScales {
        let mut all = BlockScales::default();
        for (to, from) in all.factors.iter_mut().zip(&stored[..4]) {
            *to = if *from == NAN { 0 } else { from & 0x7f };
        }
        all
    }

    fn value(b: &[u8], i: usize) -> f32 {
        let (byte, j) = (b[4 + i / 16 * 8 + i % 8], i % 16);
        let code = if j < 8 { byte & 15 } else { byte >> 4 };
        (naive_scale(b[i / 16]) * f64::from(TABLE[usize::from(code)]) / 2.0) as f32
    }

    fn quantize(x: &[f32]) -> Vec<u8> {
        let scale = |x: &[f32]| {
            // The largest value is 6 · scale.
            let wanted = f64::from(magnitude(x)) / 6.0;
            let distance = |byte: &u8| (naive_scale(*byte) - wanted).abs();
            (0..NAN).min_by(|a, b| distance(a).total_cmp(&distance(b))).unwrap_or(0)
        };
        let scales: Vec<u8> = x.chunks(16).map(scale).collect();
        let q = x.chunks(16).zip(&scales).flat_map(|(x, scale)| {
            let d = (naive_scale(*scale) / 2.0) as f32;
            let q: Vec<u8> = x.iter().map(|x| nearest_code(&TABLE, *x, d)).collect();
            (0..8).map(|i| q[i] | q[8 + i] << 4).collect::<Vec<u8>>()
        });
        let q: Vec<u8> = q.collect();
        [scales, q].concat()
    }
}

/// A UE4M3 scale.
fn naive_scale(byte: u8) -> f64 {
    let (exponent, mantissa) = (i32::from(byte >> 3 & 15), f64::from(byte & 7));
    match exponent {
        _ if byte == NAN => 0.0,
        0 => mantissa * 2f64.powi(-9),
        _ => (1.0 + mantissa / 8.0) * 2f64.powi(exponent - 7),
    }
}
