//! F32: IEEE 754 binary32.

use super::Float;

/// The format F32.
#[derive(Clone, Copy, Debug)]
pub struct F32;

impl Float<4> for F32 {
    const NAME: &'static str = "F32";
    const GGUF_ID: u32 = 0;

    #[inline(always)]
    fn value(stored: [u8; 4]) -> f32 {
        f32::from_le_bytes(stored)
    }

    fn naive(stored: [u8; 4]) -> f32 {
        f32::from_le_bytes(stored)
    }

    fn store(x: f32) -> [u8; 4] {
        x.to_le_bytes()
    }
}
