//! Prefetch of the next tiles.

use crate::simd::prefetch::{PrefetchHint, prefetch_range};

/// Bytes that are prefetched while a block is computed, as many with each group: memory delivers few lines at a time.
#[derive(Clone, Copy)]
pub(super) struct Ahead {
    from: *const u8,
    of_group: usize,
}

impl Ahead {
    /// These bytes, if there are any, during so many groups.
    pub(super) fn new(bytes: Option<(*const u8, usize)>, groups: usize) -> Ahead {
        let (from, len) = bytes.unwrap_or((std::ptr::null(), 0));
        Ahead { from, of_group: len.div_ceil(groups) }
    }

    #[inline(always)]
    pub(super) fn prefetch(self, group: usize) {
        let from = self.from.wrapping_add(group * self.of_group);
        prefetch_range(from, 0..self.of_group, PrefetchHint::L2Only);
    }
}
