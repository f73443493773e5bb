//! What the prefix cache of an engine has.

use lapwing_actors::prefix::{CacheEvents, PrefixCache, StoredBlocks, block_tokens};

use super::Engine;
#[cfg(doc)]
use super::EngineBuilder;
use crate::kv_events::CacheBlocks;

impl Engine {
    /// What the prefix cache has from now on: first all that it has, then what it stores and removes, exactly and in order. `None` if
    /// the engine has no prefix cache ([`EngineBuilder::prefix_cache`], encoders), or has ended.
    ///
    /// An engine does not wait for readers. Without readers, it keeps no events.
    ///
    /// ```no_run
    /// use std::collections::HashSet;
    ///
    /// use lapwing::Engine;
    /// use lapwing::kv_events::{BlockHash, CacheEvent, CacheGroup};
    ///
    /// # async fn example(engine: Engine) {
    /// let mut known: HashSet<(CacheGroup, BlockHash)> = HashSet::new();
    /// let Some(mut events) = engine.cache_events() else { return };
    /// while let Some(batch) = events.next().await {
    ///     for event in &*batch {
    ///         match event {
    ///             CacheEvent::Cleared => known.clear(),
    ///             CacheEvent::Stored(blocks) => {
    ///                 known.extend(blocks.hashes.iter().map(|hash| (blocks.group, *hash)));
    ///             }
    ///             CacheEvent::Removed { group, hashes } => {
    ///                 hashes.iter().for_each(|hash| drop(known.remove(&(*group, *hash))));
    ///             }
    ///         }
    ///     }
    /// }
    /// # }
    /// ```
    pub fn cache_events(&self) -> Option<CacheEvents> {
        self.inner.prefixes.as_ref().and_then(PrefixCache::follow)
    }

    /// The blocks that the prefix cache has now, each after the one before it. The engine waits while they are
    /// collected.
    pub fn cached_blocks(&self) -> Vec<StoredBlocks> {
        self.inner.prefixes.as_ref().map(PrefixCache::blocks).unwrap_or_default()
    }

    /// The KV cache in the blocks that [`cache_events`](Engine::cache_events) tells of.
    pub fn cache_blocks(&self) -> CacheBlocks {
        let (store, layout) = (&self.inner.kv, self.inner.kv.layout());
        let tokens = block_tokens(layout.page_rows);
        CacheBlocks {
            tokens,
            count: store.pages() * layout.page_rows / tokens,
            has_states: !layout.states.is_empty(),
            are_shared: self.inner.prefixes.is_some(),
        }
    }
}
