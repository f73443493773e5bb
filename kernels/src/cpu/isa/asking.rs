//! Asking for memory before it is read. All of it is hints, and needs no instruction set: every x86-64
//! has the instructions, and elsewhere nothing happens.
#![cfg_attr(target_arch = "x86_64", expect(unsafe_code, reason = "intrinsics"))]

use crate::cpu::caches::AskInto;
use crate::cpu::packed::LINE;
use std::ops::Range;

/// What is asked for while something is read: what lies so many bytes further on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FurtherOn {
    pub(crate) bytes: usize,
    pub(crate) into: AskInto,
}

/// Asks for the line at an address that need not exist.
#[inline(always)]
pub(crate) fn ask_for(at: *const u8, into: AskInto) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_NTA, _MM_HINT_T0, _MM_HINT_T1, _mm_prefetch};
        // SAFETY: a prefetch reads nothing; every x86-64 has the instruction.
        unsafe {
            match into {
                AskInto::All => _mm_prefetch::<_MM_HINT_T0>(at.cast()),
                AskInto::Second => _mm_prefetch::<_MM_HINT_T1>(at.cast()),
                AskInto::First => _mm_prefetch::<_MM_HINT_NTA>(at.cast()),
            }
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (at, into);
}

/// Asks for some bytes after an address.
#[inline(always)]
pub(crate) fn ask_for_all(from: *const u8, bytes: Range<usize>, into: AskInto) {
    for at in bytes.step_by(LINE) {
        ask_for(from.wrapping_add(at), into);
    }
}
