//! Which chunk comes first.

use lapwing_kernels::sync::{AtomicBool, Ordering};

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
}

impl Life {
    /// From now on the chunk passes others.
    pub fn make_due(&self) {
        self.is_due.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_due(&self) -> bool {
        self.is_due.load(Ordering::Relaxed)
    }
}
