//! The prefix cache: KV pages of earlier requests, found again by the tokens that they hold.
//!
//! The scheduler inserts the pages of a sequence after each of its chunks and when it ends, and gives a
//! request the pages that begin with the same tokens when it admits it. Pages stay in the KV cache
//! until another sequence needs them.

mod tree;

use std::sync::Arc;

pub(crate) use tree::common;
pub use tree::{Found, PrefixTree};

/// Requests share prefixes only with requests of the same namespace. The default is a namespace, too.
pub type Namespace = Option<Arc<str>>;

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
