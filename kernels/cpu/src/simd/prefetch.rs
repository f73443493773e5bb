//! Prefetch instructions. They are hints: x86-64 always has them; on other architectures they do
//! nothing.
#![cfg_attr(target_arch = "x86_64", expect(unsafe_code, reason = "intrinsics"))]

use std::ops::Range;

/// Bytes of a cache line.
pub(crate) const CACHE_LINE: usize = 64;

/// Caches that streamed data (weights, keys and values, each read once per step) are prefetched
/// into. The best choice is measured per processor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PrefetchHint {
    /// All levels (`prefetcht0`).
    #[default]
    AllLevels,
    /// The second level but not the first (`prefetcht1`), which waits for fewer lines at a time. On
    /// Zen 4, one token is 15 to 28 % faster than with [`L1Only`](PrefetchHint::L1Only), and after
    /// 4000 tokens 25 to 37 % faster than with [`AllLevels`](PrefetchHint::AllLevels).
    L2Only,
    /// The first level but not the second (`prefetchnta`), so that weights do not displace data
    /// that is used again. As fast as the others on Zen 5; an Intel server CPU streams at a fifth
    /// to a third of the speed.
    L1Only,
}

impl PrefetchHint {
    /// The fastest hint on an AMD processor of this family, or on another vendor's processor
    /// (`None`).
    pub(crate) fn on(amd_family: Option<u32>) -> PrefetchHint {
        /// Zen 3 has the same number. Older families are unmeasured.
        const ZEN_4: u32 = 0x19;
        match amd_family {
            Some(..=ZEN_4) => PrefetchHint::L2Only,
            Some(_) => PrefetchHint::L1Only,
            None => PrefetchHint::AllLevels,
        }
    }
}

/// Prefetch at a fixed distance after the address being read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PrefetchOffset {
    pub(crate) bytes: usize,
    pub(crate) hint: PrefetchHint,
}

/// Prefetches the line at an address, which need not exist.
#[inline(always)]
pub(crate) fn prefetch_line(at: *const u8, hint: PrefetchHint) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_NTA, _MM_HINT_T0, _MM_HINT_T1, _mm_prefetch};
        // SAFETY: a prefetch reads nothing; every x86-64 has the instruction.
        unsafe {
            match hint {
                PrefetchHint::AllLevels => _mm_prefetch::<_MM_HINT_T0>(at.cast()),
                PrefetchHint::L2Only => _mm_prefetch::<_MM_HINT_T1>(at.cast()),
                PrefetchHint::L1Only => _mm_prefetch::<_MM_HINT_NTA>(at.cast()),
            }
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (at, hint);
}

/// Prefetches a range of bytes relative to an address.
#[inline(always)]
pub(crate) fn prefetch_range(from: *const u8, bytes: Range<usize>, hint: PrefetchHint) {
    for at in bytes.step_by(CACHE_LINE) {
        prefetch_line(from.wrapping_add(at), hint);
    }
}

/// Prefetches `rows` rows of `bytes` bytes each, `stride` bytes apart.
#[inline(always)]
pub(crate) fn prefetch_rows(
    from: *const u8,
    rows: usize,
    stride: usize,
    bytes: usize,
    hint: PrefetchHint,
) {
    for row in 0..rows {
        prefetch_range(from.wrapping_add(row * stride), 0..bytes, hint);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_processor_has_its_hint() {
        let cases = [
            ("Zen 4", Some(25), PrefetchHint::L2Only),
            ("Zen 5", Some(26), PrefetchHint::L1Only),
            ("not of AMD", None, PrefetchHint::AllLevels),
        ];
        for (what, family, want) in cases {
            assert_eq!(PrefetchHint::on(family), want, "{what}");
        }
    }
}
