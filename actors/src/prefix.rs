//! The prefix cache: KV pages of earlier requests, found again by the tokens that they hold.
//!
//! The scheduler inserts the pages of a sequence after each of its chunks and when it ends, and gives a
//! request the pages that begin with the same tokens when it admits it. Pages stay in the KV cache
//! until another sequence needs them.

mod block;
mod events;
mod follower;
mod tree;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lapwing_kernels::kv::DuplicatePage;

pub use block::{BlockHash, CacheBatch, CacheEvent, CacheGroup, StoredBlocks, block_tokens};
pub use events::CacheEvents;
pub use tree::{CachedText, DroppedText, Found, KeptState, PrefixTree};
pub(crate) use tree::{Kept, Known, common};

/// Requests share prefixes only with requests of the same namespace. The default is a namespace, too.
pub type Namespace = Option<Arc<str>>;

/// The prefix cache of a model. Clones share it.
#[derive(Clone, Debug)]
pub struct PrefixCache {
    tree: Arc<Mutex<PrefixTree>>,
    store: Option<Arc<dyn DuplicatePage>>,
}

impl PrefixCache {
    /// An empty cache of pages of `page_rows` rows. `store` copies partly filled pages; without it, only whole
    /// pages are shared.
    pub fn new(page_rows: usize, store: Option<Arc<dyn DuplicatePage>>) -> PrefixCache {
        PrefixCache { tree: Arc::new(Mutex::new(PrefixTree::new(page_rows))), store }
    }

    /// The tree. The scheduler waits for it while it is locked.
    pub fn tree(&self) -> MutexGuard<'_, PrefixTree> {
        self.tree.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn store(&self) -> Option<&Arc<dyn DuplicatePage>> {
        self.store.as_ref()
    }
}

/// How a request uses the prefix cache.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum PrefixUse {
    /// It takes pages of its namespace and leaves its own there.
    Shared(Namespace),
    /// Neither.
    Off,
}

impl Default for PrefixUse {
    fn default() -> PrefixUse {
        PrefixUse::Shared(None)
    }
}

#[cfg(test)]
mod tests;
