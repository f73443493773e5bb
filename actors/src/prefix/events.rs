//! Following what a prefix cache stores and removes.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::block::{CacheBatch, CacheEvent, StoredBlocks};
use super::follower::{Batches, channel};
use super::{PrefixCache, PrefixTree};

/// What a prefix cache stores and removes, exactly and in order: blocks of 16 tokens that were stored and not removed
/// since the last [`CacheEvent::Cleared`] are those that the cache has.
///
/// - The first batch is `Cleared`, then all that the cache has.
/// - A block is stored once, even if several requests computed it: when the cache first has all of its tokens. It is removed when
///   the cache no longer has them. Rows of a running request are in the cache when a page of them is complete, or the request has ended.
/// - The block before one is stored before it and removed after it.
/// - The cache never waits for a reader, and keeps at most 4096 batches for it. A reader that is further behind gets `Cleared` and
///   all blocks that the cache then has, as at the start.
#[derive(Debug)]
pub struct CacheEvents {
    tree: Weak<Mutex<PrefixTree>>,
    batches: Batches,
}

impl PrefixCache {
    /// Follows the cache; `None` if its engine has ended. Without a follower, no events are kept.
    pub fn follow(&self) -> Option<CacheEvents> {
        let (follower, batches) = channel();
        let mut tree = self.tree();
        let block = tree.block_tokens();
        let follows = tree.follow(follower, block);
        drop(tree);
        follows.then(|| CacheEvents::new(self, batches))
    }

    /// The blocks that the cache has, each after the one before it. The scheduler waits while they are collected.
    pub fn blocks(&self) -> Vec<StoredBlocks> {
        let tree = self.tree();
        tree.blocks(tree.block_tokens())
    }

    /// Ends the events of all followers.
    pub fn end_events(&self) {
        self.tree().end_events();
    }
}

impl CacheEvents {
    pub(super) fn new(cache: &PrefixCache, batches: Batches) -> CacheEvents {
        CacheEvents { tree: Arc::downgrade(&cache.tree), batches }
    }

    /// The next changes; `None` if the engine has ended.
    pub async fn next(&mut self) -> Option<CacheBatch> {
        if self.batches.is_behind() {
            return self.all();
        }
        self.batches.next().await
    }

    /// As [`next`](CacheEvents::next), on the calling thread.
    pub fn next_blocking(&mut self) -> Option<CacheBatch> {
        if self.batches.is_behind() {
            return self.all();
        }
        self.batches.next_blocking()
    }

    /// The next changes; `None` if there are none yet.
    pub fn try_next(&mut self) -> Option<CacheBatch> {
        if self.batches.is_behind() {
            return self.all();
        }
        self.batches.try_next()
    }

    /// Whether nothing comes any more, because the engine has ended.
    pub fn have_ended(&self) -> bool {
        self.batches.have_ended()
    }

    /// Makes the next batch `Cleared` and all that the cache has, as at the start.
    pub fn start_again(&mut self) {
        self.batches.fall_behind();
    }

    fn all(&self) -> Option<CacheBatch> {
        let tree = self.tree.upgrade()?;
        let tree = tree.lock().unwrap_or_else(PoisonError::into_inner);
        let blocks = tree.followed_blocks()?;
        self.batches.catch_up();
        let stored = blocks.into_iter().map(CacheEvent::Stored);
        Some([CacheEvent::Cleared].into_iter().chain(stored).collect())
    }
}
