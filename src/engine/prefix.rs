//! Settings of an engine's prefix cache.

use super::EngineBuilder;
#[cfg(doc)]
use crate::request::Request;

impl EngineBuilder {
    /// Whether requests share the keys and values of their common first tokens, such as a system prompt or the
    /// earlier messages of a conversation; by default they do. The rows of a known prefix are not computed
    /// again, and no token changes. [`RequestTimes::cached_tokens`](lapwing_traces::RequestTimes::cached_tokens)
    /// reports how many were known.
    ///
    /// Pages of earlier requests stay in the KV cache ([`cache_tokens`](EngineBuilder::cache_tokens)) until
    /// other requests need the room; the ones that were used least recently go first.
    /// [`Request::prefix_cache`] turns it off for one request, and [`Request::cache_salt`] keeps callers
    /// apart.
    pub fn prefix_cache(mut self, on: bool) -> EngineBuilder {
        self.settings.no_prefix_cache = !on;
        self
    }
}
