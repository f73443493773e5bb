//! Settings of the prefix cache.

use std::path::PathBuf;

use super::EngineBuilder;
#[cfg(doc)]
use crate::{engine::Engine, request::Request};

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

    /// Keeps the prefix cache in a folder between runs: [`Engine::shutdown`] writes it, and the next engine of
    /// the same model, devices and settings reads it. A file that is damaged or belongs to another version
    /// or other weights is not used and replaced later; [`Engine::notes`] says so.
    ///
    /// The file holds the tokens of prompts and answers; a folder that the engine makes is readable by its
    /// user only. Only trusted users may have write access to the folder, because checksums do not detect
    /// tampering. Weights are identified as by [`packed_cache`](EngineBuilder::packed_cache).
    pub fn keep_prefixes(mut self, folder: impl Into<PathBuf>) -> EngineBuilder {
        self.settings.kept_prefixes = Some(folder.into());
        self
    }
}
