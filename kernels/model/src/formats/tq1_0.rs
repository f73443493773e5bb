//! TQ1_0: digits of base 3, five in a byte, blocks of 256 with one binary16 scale; value = d · (q − 1).

use super::block::{BlockScales, Integers, Scales};
use super::naive::{half_at, magnitude, steps};
use super::{ActivationBlocks, Places, Quantised};
use half::f16;

/// The format TQ1_0.
#[derive(Clone, Copy, Debug)]
pub struct Tq1_0;

/// Runs of bytes of a block: where they begin, how many there are, digits of each. Value `i` of a run is digit `i / bytes` of
/// byte `i % bytes`.
const RUNS: [Run; 3] = [
    Run { at: 0, bytes: 32, digits: 5 },
    Run { at: 32, bytes: 16, digits: 5 },
    Run { at: 48, bytes: 4, digits: 4 },
];

struct Run {
    at: usize,
    bytes: usize,
    digits: usize,
}

/// Digit `n` of a byte, which holds the digits as a fraction of 256, the first one being the greatest.
#[inline(always)]
fn digit(byte: u8, n: usize) -> u8 {
    const POWERS: [u8; 5] = [1, 3, 9, 27, 81];
    ((u16::from(byte.wrapping_mul(POWERS[n])) * 3) >> 8) as u8
}

impl Quantised for Tq1_0 {
    const NAME: &'static str = "TQ1_0";
    const GGUF_ID: u32 = 34;
    const LEN: usize = 256;
    const BYTES: usize = 54;
    const BITS: usize = 2;
    const SCALES: Scales = Scales::Signed;
    const ZERO_POINT: i32 = 1;
    const ACTIVATIONS: ActivationBlocks = ActivationBlocks::Q8K;
    const PLACES: Places = Places::Scattered { values: 256 };

    #[inline(always)]
    fn integers(stored: &[u8], q: &mut Integers) {
        let mut to = q.iter_mut();
        for Run { at, bytes, digits } in RUNS {
            for n in 0..digits {
                for (byte, to) in stored[at..at + bytes].iter().zip(&mut to) {
                    *to = digit(*byte, n);
                }
            }
        }
    }

    /// The groups share the scale, so their factors are 1.
    #[inline(always)]
    fn scales(stored: &[u8]) -> BlockScales {
        BlockScales { factors: [1; 16], ..BlockScales::at(stored, 52) }
    }

    fn value(b: &[u8], i: usize) -> f32 {
        let (byte, n) = match i {
            ..160 => (b[i % 32], i / 32),
            160..240 => (b[32 + i % 16], (i - 160) / 16),
            _ => (b[48 + i % 4], (i - 240) / 4),
        };
        let shifted = u32::from(byte) * 3u32.pow(n as u32) % 256;
        half_at(b, 52) * ((shifted * 3 / 256) as f32 - 1.0)
    }

    fn quantize(x: &[f32]) -> Vec<u8> {
        let d = f16::from_f32(magnitude(x));
        let q = x.iter().map(|x| (steps(*x, d.to_f32(), -1.0, 1.0) + 1.0) as u16);
        let q: Vec<u16> = q.collect();
        let (mut to, mut done) = (Vec::new(), 0);
        for Run { bytes, digits, .. } in RUNS {
            to.extend((0..bytes).map(|byte| {
                let digit = |n: usize| if n < digits { q[done + n * bytes + byte] } else { 0 };
                let all = (0..5).fold(0, |all, n| all * 3 + digit(n));
                // The smallest fraction of 256 that has these digits.
                (all * 256).div_ceil(243) as u8
            }));
            done += bytes * digits;
        }
        to.extend(d.to_le_bytes());
        to
    }
}
