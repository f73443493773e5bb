//! Blocks of cached tokens, as other programs name them: their hashes, and what a cache stores and removes.

use std::fmt;
use std::sync::Arc;

use sha2::{Digest, Sha256};

use super::Namespace;

/// Tokens of a block, if pages consist of whole ones.
const BLOCK_TOKENS: usize = 16;

/// Tokens of the blocks of a cache whose pages have so many rows: 16, or a page if that is no multiple of 16.
pub fn block_tokens(page_rows: usize) -> usize {
    if page_rows.is_multiple_of(BLOCK_TOKENS) { BLOCK_TOKENS } else { page_rows.max(1) }
}

/// Names a block: its tokens, all tokens before it, and its namespace. It is the same in every process, so that a
/// router may compute it:
///
/// ```text
/// hash(block)     = end(SHA-256(00 ‖ hash(the block before) ‖ its tokens))
/// hash(no block)  = 0, or in a namespace end(SHA-256(01 ‖ its name in UTF-8))
/// ```
///
/// `end` is the last 8 bytes as a number. Numbers are big-endian, hashes of 8 bytes and tokens of 4.
///
/// ```
/// use lapwing_actors::prefix::BlockHash;
///
/// let first = BlockHash::start(None).then(&[1, 2, 3, 4]);
/// assert_eq!(first.to_string(), "cf97d71f85d7a35d");
/// assert_ne!(first, BlockHash::start(Some("alice")).then(&[1, 2, 3, 4]));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BlockHash(pub u64);

impl BlockHash {
    /// What the first block of a text comes after, in a namespace or in that of all requests without one.
    pub fn start(namespace: Option<&str>) -> BlockHash {
        let of = |name: &str| BlockHash::last_of(Sha256::new_with_prefix([1]).chain_update(name));
        namespace.map_or(BlockHash(0), of)
    }

    /// The block of these tokens after this one.
    pub fn then(self, tokens: &[u32]) -> BlockHash {
        let mut hash = Sha256::new_with_prefix([0]).chain_update(self.0.to_be_bytes());
        tokens.iter().for_each(|id| hash.update(id.to_be_bytes()));
        BlockHash::last_of(hash)
    }

    /// The whole blocks of `size` tokens of a text after this one.
    pub fn chain(self, tokens: &[u32], size: usize) -> impl Iterator<Item = BlockHash> + '_ {
        tokens.chunks_exact(size.max(1)).scan(self, |before, block| {
            *before = before.then(block);
            Some(*before)
        })
    }

    fn last_of(hash: Sha256) -> BlockHash {
        let digest = hash.finalize();
        BlockHash(digest[24..].iter().fold(0, |value, byte| value << 8 | u64::from(*byte)))
    }
}

impl fmt::Display for BlockHash {
    /// Sixteen hexadecimal digits.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// What is kept of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CacheGroup {
    /// Keys and values of its rows, of all layers that have some.
    Attention,
    /// The states of all layers after its last row. A request of a model with states goes on only where they are kept.
    States,
}

/// Blocks that a cache has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredBlocks {
    /// What is kept of them.
    pub group: CacheGroup,
    /// Their hashes, in the order of the text; at least one. Of [`CacheGroup::States`] it is one.
    pub hashes: Vec<BlockHash>,
    /// The block before the first one; `None` at the beginning of a text.
    pub parent: Option<BlockHash>,
    /// Their tokens, `block_tokens` for each.
    pub tokens: Vec<u32>,
    /// Tokens of a block.
    pub block_tokens: usize,
    /// The namespace of the requests that share them.
    pub namespace: Namespace,
}

/// A change of a cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CacheEvent {
    /// Blocks that it did not have are there. Those before them are.
    Stored(StoredBlocks),
    /// Blocks are gone. Those after them are.
    Removed {
        /// What was kept of them.
        group: CacheGroup,
        /// Their hashes.
        hashes: Vec<BlockHash>,
    },
    /// All blocks known so far are removed. Where the cache is not empty, its blocks follow as stored ones.
    Cleared,
}

/// Changes that happened at once, in their order.
pub type CacheBatch = Arc<[CacheEvent]>;
