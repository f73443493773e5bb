//! BF16: bfloat16, the upper half of an IEEE 754 binary32.

use super::Float;
use half::bf16;

/// The format BF16.
#[derive(Clone, Copy, Debug)]
pub struct Bf16;

impl Float<2> for Bf16 {
    const NAME: &'static str = "BF16";
    const GGUF_ID: u32 = 30;

    #[inline(always)]
    fn value(stored: [u8; 2]) -> f32 {
        f32::from_bits(u32::from(u16::from_le_bytes(stored)) << 16)
    }

    fn naive(stored: [u8; 2]) -> f32 {
        bf16::from_le_bytes(stored).to_f32()
    }

    fn store(x: f32) -> [u8; 2] {
        bf16::from_f32(x).to_le_bytes()
    }
}
