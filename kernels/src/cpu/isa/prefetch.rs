//! Asking for memory before it is read. All of it is hints, and needs no instruction set: every x86-64
//! has the instructions, and elsewhere nothing happens.
#![cfg_attr(target_arch = "x86_64", expect(unsafe_code, reason = "intrinsics"))]

use crate::cpu::caches::PrefetchHint;
use crate::cpu::packed::LINE;
use std::ops::Range;

/// What is asked for while something is read: what lies so many bytes further on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PrefetchOffset {
    pub(crate) bytes: usize,
    pub(crate) into: PrefetchHint,
}

/// Asks for the line at an address that need not exist.
#[inline(always)]
pub(crate) fn prefetch_line(at: *const u8, into: PrefetchHint) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_NTA, _MM_HINT_T0, _MM_HINT_T1, _mm_prefetch};
        // SAFETY: a prefetch reads nothing; every x86-64 has the instruction.
        unsafe {
            match into {
                PrefetchHint::AllLevels => _mm_prefetch::<_MM_HINT_T0>(at.cast()),
                PrefetchHint::L2Only => _mm_prefetch::<_MM_HINT_T1>(at.cast()),
                PrefetchHint::L1Only => _mm_prefetch::<_MM_HINT_NTA>(at.cast()),
            }
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (at, into);
}

/// Asks for some bytes after an address.
#[inline(always)]
pub(crate) fn prefetch_range(from: *const u8, bytes: Range<usize>, into: PrefetchHint) {
    for at in bytes.step_by(LINE) {
        prefetch_line(from.wrapping_add(at), into);
    }
}
