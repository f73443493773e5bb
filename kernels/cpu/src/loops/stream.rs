//! Streams memory without computing: a bandwidth probe.
#![expect(unsafe_code, reason = "vectors are loaded through pointers into whole chunks")]

use crate::simd::f32x16::F32x16;
use crate::simd::prefetch::{CACHE_LINE, PrefetchOffset, prefetch_line};

/// The largest f32 of all whole lines, ignoring NaN. With `prefetch`, prefetches at that offset
/// from each line.
///
/// # Safety
/// The machine has the instructions of `V`.
#[inline(always)]
pub(crate) unsafe fn stream_read<V: F32x16>(bytes: &[u8], prefetch: Option<PrefetchOffset>) -> f32 {
    /// Lines with independent maxima.
    const INTERLEAVED: usize = 4;
    // SAFETY: by the caller, and each line has sixteen values.
    unsafe {
        let mut largest = [V::splat(f32::NEG_INFINITY); INTERLEAVED];
        let (blocks, rest) = bytes.as_chunks::<{ INTERLEAVED * CACHE_LINE }>();
        for block in blocks {
            for (line, largest) in block.as_chunks::<CACHE_LINE>().0.iter().zip(&mut largest) {
                if let Some(PrefetchOffset { bytes, hint }) = prefetch {
                    prefetch_line(line.as_ptr().wrapping_add(bytes), hint);
                }
                *largest = V::load(line.as_ptr().cast()).max(*largest);
            }
        }
        for line in rest.as_chunks::<CACHE_LINE>().0 {
            largest[0] = V::load(line.as_ptr().cast()).max(largest[0]);
        }
        let [a, b, c, d] = largest;
        a.max(b).max(c.max(d)).highest()
    }
}
