//! What a cache of prepared graphs tells.

/// Contents and counters of a cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheStats {
    /// Graphs in the cache.
    pub graphs: usize,
    /// Bytes of these graphs.
    pub bytes: u64,
    /// Peak bytes of all graphs in memory, including graphs that were evicted while they ran.
    pub peak_bytes: u64,
    /// Budget for `bytes`.
    pub budget: u64,
    /// Bytes that all graphs share, outside the budget: copies of weights, scratch.
    pub shared_bytes: u64,
    /// Graphs prepared so far.
    pub prepared: u64,
    /// Graphs among these that were prepared on the spot and ran without being cached, because
    /// only the eviction of graphs prepared ahead would have made room. Only `peak_bytes` counts their bytes.
    pub uncached: u64,
    /// Graphs among those prepared that came from the folder of an earlier start.
    pub kept: u64,
    /// Files of that folder that could not be used; their graphs were prepared anew.
    pub refused: u64,
    /// Graphs evicted so far.
    pub evicted: u64,
    /// Runs of graphs for work; checks are not counted.
    pub runs: u64,
}
