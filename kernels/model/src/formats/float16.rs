//! F16: IEEE 754 binary16.

use super::Float;
use crate::binary16;
use half::f16;

/// The format F16.
#[derive(Clone, Copy, Debug)]
pub struct F16;

impl Float<2> for F16 {
    const NAME: &'static str = "F16";
    const GGUF_ID: u32 = 1;

    #[inline(always)]
    fn value(stored: [u8; 2]) -> f32 {
        binary16::to_f32(u16::from_le_bytes(stored))
    }

    fn naive(stored: [u8; 2]) -> f32 {
        f16::from_le_bytes(stored).to_f32()
    }

    fn store(x: f32) -> [u8; 2] {
        f16::from_f32(x).to_le_bytes()
    }
}
