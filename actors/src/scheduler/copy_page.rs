//! Copies of cached pages.

use std::sync::Arc;

use lapwing_kernels::kv::{DuplicatePage, KvPage};

use crate::message::RollBack;
use crate::sequence::SequenceId;

/// A copy of a partly filled page of the prefix cache, for a sequence that will write its other rows.
#[derive(Debug)]
pub struct CopyPage {
    pub(super) store: Arc<dyn DuplicatePage>,
    pub(super) from: KvPage,
    pub(super) to: KvPage,
    pub(super) instead: RollBack,
}

impl CopyPage {
    /// Whether the copy is for this sequence.
    pub(super) fn is_of(&self, sequence: SequenceId) -> bool {
        self.instead.sequence == sequence
    }

    /// Copies the page. It must be done before the chunks are sent that were cut after it.
    ///
    /// # Errors
    /// When a device that alone holds the page has failed: the message for the scheduler, which will have the
    /// page's rows computed instead.
    pub fn run(self) -> Result<(), RollBack> {
        self.store.duplicate_page(self.from.id(), self.to.id()).map_err(|error| {
            tracing::warn!(%error, "a cached page was not copied; its rows are computed again");
            self.instead
        })
    }
}
