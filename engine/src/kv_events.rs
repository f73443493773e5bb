//! What the prefix cache of an engine has, block by block, for routers that send requests to where their beginning is
//! known: [`Engine::cache_events`](crate::Engine::cache_events). docs/kv_events.md describes the events that a server publishes.

pub use lapwing_actors::prefix::{
    BlockHash, CacheBatch, CacheEvent, CacheEvents, CacheGroup, StoredBlocks,
};

/// The KV cache of an engine in blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CacheBlocks {
    /// Tokens of a block.
    pub tokens: usize,
    /// Blocks that fit, those of running requests included.
    pub count: usize,
    /// Whether layers keep states, so that a request goes on only where these are kept ([`CacheGroup::States`]).
    pub has_states: bool,
    /// Whether requests share blocks. If not, there are no events.
    pub are_shared: bool,
}
