//! Which chunk comes first.

use std::time::Duration;

use lapwing_kernels::sync::{AtomicBool, AtomicU64, Ordering};

/// Which of the chunks that wait for a device comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Turn {
    /// A step of streams that are due.
    Due,
    /// In order of arrival.
    InTurn,
    /// Background work.
    Background,
}

/// That a chunk has not ended, and whether its streams have become due on its way.
#[derive(Debug, Default)]
pub struct Life {
    is_due: AtomicBool,
    /// Time in ns of others that a step lets pass before it begins: its streams have so much time left.
    spare: AtomicU64,
}

impl Life {
    /// From now on the chunk passes others.
    pub fn make_due(&self) {
        self.is_due.store(true, Ordering::Relaxed);
    }

    /// Lets others pass for so long before it begins.
    pub fn spare(&self, time: Duration) {
        let ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.spare.store(ns, Ordering::Relaxed);
    }

    /// Whether it has time to let others pass.
    pub fn is_unhurried(&self) -> bool {
        self.spare.load(Ordering::Relaxed) > 0
    }

    /// Whether it has time for a part of another chunk.
    pub fn can_spare(&self, part: Duration) -> bool {
        u128::from(self.spare.load(Ordering::Relaxed)) >= part.as_nanos()
    }

    /// A part of another chunk has passed it.
    pub fn spend(&self, part: Duration) {
        let ns = u64::try_from(part.as_nanos()).unwrap_or(u64::MAX);
        let left = self.spare.load(Ordering::Relaxed).saturating_sub(ns);
        self.spare.store(left, Ordering::Relaxed);
    }

    pub(super) fn is_due(&self) -> bool {
        self.is_due.load(Ordering::Relaxed)
    }
}
