//! Prepared graphs within a byte budget: graph building on NPUs needs much memory.

use std::collections::HashMap;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use lapwing_model::device::GraphKey;
use lapwing_model::sync::{Mutex, lock};

mod ensure;
mod stats;

pub use ensure::{Ensured, EnsuredAll};
pub use stats::CacheStats;

/// The prepared graphs of one device, with eviction of the least recently used.
///
/// A graph of a [`Preparer`](lapwing_model::device::Preparer) is evicted only for another graph of a
/// preparer. The caller of the preparer is notified of these evictions, and of no others. `T` is
/// the back end's executable graph, or `()` in a simulation of sizes alone. Clones share one cache.
pub struct GraphCache<T> {
    /// Name of the device.
    device: Arc<str>,
    budget: u64,
    ready: Arc<Mutex<Ready<T>>>,
    memory: Arc<Mutex<Memory>>,
}

struct Ready<T> {
    graphs: HashMap<GraphKey, Entry<T>>,
    /// Bytes of `graphs`.
    bytes: u64,
    shared_bytes: u64,
    /// Number of uses so far: the clock of the eviction order.
    uses: u64,
    counts: Counts,
}

#[derive(Default)]
struct Counts {
    prepared: u64,
    uncached: u64,
    evicted: u64,
    runs: u64,
    kept: u64,
    refused: u64,
}

struct Entry<T> {
    graph: Arc<CachedGraph<T>>,
    used: u64,
    /// A preparer has prepared it or found it ready.
    ahead: bool,
}

/// The requester of graphs, which determines what may be evicted for them.
#[derive(Clone, Copy, Debug)]
pub enum Requester<'a> {
    /// A preparer, which may evict anything except these graphs.
    Preparer(&'a [GraphKey]),
    /// The device while it runs, which may only evict graphs that no preparer has requested.
    Device,
}

/// There is no room for a graph, because graphs of `retained` bytes may not be evicted.
struct Full {
    retained: u64,
}

/// Bytes of every graph in memory, in the cache or only running.
#[derive(Default)]
struct Memory {
    bytes: u64,
    peak: u64,
}

/// A graph, whose memory is counted until it is dropped.
pub struct CachedGraph<T> {
    key: GraphKey,
    graph: T,
    bytes: u64,
    memory: Arc<Mutex<Memory>>,
}

impl<T> Drop for CachedGraph<T> {
    fn drop(&mut self) {
        lock(&self.memory).bytes -= self.bytes;
    }
}

impl<T> Deref for CachedGraph<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.graph
    }
}

impl<T> Clone for GraphCache<T> {
    fn clone(&self) -> GraphCache<T> {
        let (device, ready) = (Arc::clone(&self.device), Arc::clone(&self.ready));
        GraphCache { device, budget: self.budget, ready, memory: Arc::clone(&self.memory) }
    }
}

impl<T> fmt::Debug for GraphCache<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("GraphCache");
        debug.field("device", &self.device).field("stats", &self.stats()).finish()
    }
}

impl<T> GraphCache<T> {
    /// An empty cache for the device of that name, with a budget in bytes.
    pub fn new(device: &str, budget: u64) -> GraphCache<T> {
        let (graphs, counts) = (HashMap::new(), Counts::default());
        let ready = Ready { graphs, bytes: 0, shared_bytes: 0, uses: 0, counts };
        GraphCache {
            device: device.into(),
            budget,
            ready: Arc::new(Mutex::new(ready)),
            memory: Arc::default(),
        }
    }

    /// Contents and counters.
    pub fn stats(&self) -> CacheStats {
        let ready = lock(&self.ready);
        CacheStats {
            graphs: ready.graphs.len(),
            bytes: ready.bytes,
            peak_bytes: lock(&self.memory).peak,
            budget: self.budget,
            shared_bytes: ready.shared_bytes,
            prepared: ready.counts.prepared,
            uncached: ready.counts.uncached,
            kept: ready.counts.kept,
            refused: ready.counts.refused,
            evicted: ready.counts.evicted,
            runs: ready.counts.runs,
        }
    }

    /// Whether a graph is in the cache. Does not count as a use.
    pub fn contains(&self, key: &GraphKey) -> bool {
        lock(&self.ready).graphs.contains_key(key)
    }

    /// A graph, if it is in the cache. Counts as a use.
    pub fn get(&self, key: &GraphKey, requester: Requester<'_>) -> Option<Arc<CachedGraph<T>>> {
        let mut ready = lock(&self.ready);
        ready.uses += 1;
        let now = ready.uses;
        let entry = ready.graphs.get_mut(key)?;
        entry.used = now;
        entry.ahead |= requester.is_preparer();
        Some(Arc::clone(&entry.graph))
    }

    /// Bytes of a graph, if it is in the cache. Does not count as a use.
    pub(super) fn bytes_of(&self, key: &GraphKey) -> Option<u64> {
        lock(&self.ready).graphs.get(key).map(|entry| entry.graph.bytes)
    }

    pub(super) fn set_shared_bytes(&self, bytes: u64) {
        lock(&self.ready).shared_bytes = bytes;
    }

    /// Counts a file of the folder: a graph that came from there, or one that could not be used.
    pub(super) fn count_kept(&self, is_used: bool) {
        let mut ready = lock(&self.ready);
        let Counts { kept, refused, .. } = &mut ready.counts;
        *(if is_used { kept } else { refused }) += 1;
    }

    pub(super) fn count_run(&self) {
        lock(&self.ready).counts.runs += 1;
    }

    /// Evicts graphs, the least recently used first, until `bytes` more fit; returns the evicted
    /// keys. Graphs of the same request, `with`, are not evicted.
    ///
    /// # Errors
    /// [`Full`] if evicting everything that may go is not enough; nothing is then evicted.
    fn evict(
        &self,
        bytes: u64,
        with: &[GraphKey],
        requester: Requester<'_>,
    ) -> Result<Vec<GraphKey>, Full> {
        let mut ready = lock(&self.ready);
        let mut free = self.budget.saturating_sub(ready.bytes);
        if free >= bytes {
            return Ok(Vec::new());
        }
        let is_retained = |key: &GraphKey, entry: &Entry<T>| {
            let protected = match requester {
                Requester::Preparer(keep) => keep.contains(key),
                Requester::Device => entry.ahead,
            };
            protected || with.contains(key)
        };
        let mut victims: Vec<(u64, GraphKey, u64)> = Vec::new();
        for (key, entry) in ready.graphs.iter().filter(|(key, entry)| !is_retained(key, entry)) {
            victims.push((entry.used, key.clone(), entry.graph.bytes));
        }
        victims.sort_unstable_by_key(|(used, ..)| *used);
        let needed = victims.iter().take_while(|(.., victim)| {
            let needed = free < bytes;
            free += if needed { *victim } else { 0 };
            needed
        });
        let needed = needed.count();
        if free < bytes {
            let evictable: u64 = victims.iter().map(|(.., bytes)| bytes).sum();
            return Err(Full { retained: ready.bytes - evictable });
        }
        victims.truncate(needed);
        let mut removed = Vec::with_capacity(needed);
        for (_, key, bytes) in &victims {
            removed.push(ready.graphs.remove(key));
            ready.bytes -= bytes;
            ready.counts.evicted += 1;
        }
        // Dropping graphs frees memory and may take long; a running device may wait for the lock.
        drop(ready);
        drop(removed);
        Ok(victims.into_iter().map(|(_, key, _)| key).collect())
    }

    /// Wraps a new graph and counts its memory until it is dropped; does not add it to the cache.
    pub fn track(&self, key: &GraphKey, graph: T, bytes: u64) -> CachedGraph<T> {
        let mut memory = lock(&self.memory);
        memory.bytes += bytes;
        memory.peak = memory.peak.max(memory.bytes);
        drop(memory);
        CachedGraph { key: key.clone(), graph, bytes, memory: Arc::clone(&self.memory) }
    }

    /// Adds a graph for which there is room.
    pub fn insert(&self, graph: CachedGraph<T>, requester: Requester<'_>) -> Arc<CachedGraph<T>> {
        let mut ready = lock(&self.ready);
        ready.uses += 1;
        ready.counts.prepared += 1;
        ready.bytes += graph.bytes;
        let (key, used, graph) = (graph.key.clone(), ready.uses, Arc::new(graph));
        let entry = Entry { graph: Arc::clone(&graph), used, ahead: requester.is_preparer() };
        let old = ready.graphs.insert(key, entry);
        ready.bytes -= old.map_or(0, |old| old.graph.bytes);
        graph
    }

    /// Counts a graph that runs without being cached, because there is no room.
    pub fn count_uncached(&self, graph: CachedGraph<T>) -> Arc<CachedGraph<T>> {
        let mut ready = lock(&self.ready);
        ready.counts.prepared += 1;
        ready.counts.uncached += 1;
        Arc::new(graph)
    }
}

impl Requester<'_> {
    fn is_preparer(self) -> bool {
        matches!(self, Requester::Preparer(_))
    }
}

impl<T> CachedGraph<T> {
    /// The key of the graph.
    pub fn key(&self) -> &GraphKey {
        &self.key
    }

    /// Memory that it counts towards the budget.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}
