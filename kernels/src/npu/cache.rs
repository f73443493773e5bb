//! Graphs that are ready, within a byte budget (S0-38).

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use crate::device::GraphKey;
use crate::sync::{Mutex, lock};

use super::backend::PreparedGraph;
use super::spec::GraphSpec;

/// The prepared graphs of one device: those used least recently go when others need their room.
/// Graphs that a [`Preparer`](crate::device::Preparer) has made, or asked for and found, go for
/// other graphs of a preparer only, because whoever asked for them is told of nothing else. Clones
/// share them.
#[derive(Clone)]
pub struct GraphCache {
    /// Device that they belong to.
    device: Arc<str>,
    budget: u64,
    ready: Arc<Mutex<Ready>>,
    kept: Arc<Mutex<Kept>>,
}

#[derive(Default)]
struct Ready {
    graphs: HashMap<GraphKey, Entry>,
    /// Bytes of `graphs`.
    bytes: u64,
    shared_bytes: u64,
    /// Counts uses, to tell what was used least recently.
    uses: u64,
    counts: Counts,
}

#[derive(Default)]
struct Counts {
    prepared: u64,
    unkept: u64,
    evicted: u64,
    runs: u64,
}

struct Entry {
    graph: Arc<Served>,
    used: u64,
    /// A preparer has asked for it.
    ahead: bool,
}

/// Who asks for graphs, and with it what may go for them.
#[derive(Clone, Copy)]
pub(super) enum Asker<'a> {
    /// A preparer: anything may go but these.
    Preparer(&'a [GraphKey]),
    /// The device itself, on the spot: what no preparer has asked for may go.
    Device,
}

/// There is no room for a graph, because of so many bytes that must stay.
#[derive(Clone, Copy, Debug)]
pub(super) struct Full {
    pub(super) kept: u64,
}

/// Bytes of every graph that still exists, in the cache or only running.
#[derive(Default)]
struct Kept {
    bytes: u64,
    peak: u64,
}

/// How a cache has been used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheStats {
    /// Graphs that are ready.
    pub graphs: usize,
    /// Bytes that they keep.
    pub bytes: u64,
    /// Most bytes that graphs kept at once, those included that were evicted while they ran.
    pub peak_bytes: u64,
    /// Bytes that they may keep.
    pub budget: u64,
    /// Bytes that they share, which the budget does not count: copies of weights, scratch.
    pub shared_bytes: u64,
    /// Graphs made.
    pub prepared: u64,
    /// Those of them that were made on the spot and ran without being kept, because all that could
    /// have gone for them was prepared ahead. `peak_bytes`, and nothing else, counts their bytes.
    pub unkept: u64,
    /// Graphs evicted.
    pub evicted: u64,
    /// Runs of graphs for work; runs for a check are not counted.
    pub runs: u64,
}

/// A graph that serves, and what it is. One run at a time.
pub(super) struct Served {
    pub(super) spec: GraphSpec,
    pub(super) graph: Mutex<Box<dyn PreparedGraph>>,
    bytes: u64,
    kept: Arc<Mutex<Kept>>,
}

impl Drop for Served {
    fn drop(&mut self) {
        lock(&self.kept).bytes -= self.bytes;
    }
}

impl fmt::Debug for GraphCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("GraphCache");
        debug.field("device", &self.device).field("stats", &self.stats()).finish()
    }
}

impl GraphCache {
    /// An empty cache for a device, whose graphs may keep `budget` bytes.
    pub(super) fn new(device: &str, budget: u64) -> GraphCache {
        GraphCache { device: device.into(), budget, ready: Arc::default(), kept: Arc::default() }
    }

    /// How it has been used.
    pub fn stats(&self) -> CacheStats {
        let ready = lock(&self.ready);
        CacheStats {
            graphs: ready.graphs.len(),
            bytes: ready.bytes,
            peak_bytes: lock(&self.kept).peak,
            budget: self.budget,
            shared_bytes: ready.shared_bytes,
            prepared: ready.counts.prepared,
            unkept: ready.counts.unkept,
            evicted: ready.counts.evicted,
            runs: ready.counts.runs,
        }
    }

    /// Whether a graph is ready. Does not count as a use.
    pub fn contains(&self, key: &GraphKey) -> bool {
        lock(&self.ready).graphs.contains_key(key)
    }

    /// A graph, if it is ready; it is then the one used last.
    pub(super) fn get(&self, key: &GraphKey, asker: Asker<'_>) -> Option<Arc<Served>> {
        let mut ready = lock(&self.ready);
        ready.uses += 1;
        let now = ready.uses;
        let entry = ready.graphs.get_mut(key)?;
        entry.used = now;
        entry.ahead |= asker.is_preparer();
        Some(Arc::clone(&entry.graph))
    }

    /// Bytes of a graph, if it is ready. Does not count as a use.
    pub(super) fn bytes_of(&self, key: &GraphKey) -> Option<u64> {
        lock(&self.ready).graphs.get(key).map(|entry| entry.graph.bytes)
    }

    /// Bytes that all graphs may keep.
    pub(super) fn budget(&self) -> u64 {
        self.budget
    }

    pub(super) fn set_shared_bytes(&self, bytes: u64) {
        lock(&self.ready).shared_bytes = bytes;
    }

    pub(super) fn count_run(&self) {
        lock(&self.ready).counts.runs += 1;
    }

    /// Evicts until `bytes` fit beside the others, and says what went. The graphs `with`, which are
    /// asked for together, stay.
    ///
    /// # Errors
    /// [`Full`] when nothing more may go; nothing is then evicted.
    pub(super) fn make_room(
        &self,
        bytes: u64,
        with: &[GraphKey],
        asker: Asker<'_>,
    ) -> Result<Vec<GraphKey>, Full> {
        let mut ready = lock(&self.ready);
        let mut free = self.budget.saturating_sub(ready.bytes);
        if free >= bytes {
            return Ok(Vec::new());
        }
        let stays = |key: &GraphKey, entry: &Entry| {
            let held = match asker {
                Asker::Preparer(keep) => keep.contains(key),
                Asker::Device => entry.ahead,
            };
            held || with.contains(key)
        };
        let mut victims: Vec<(u64, GraphKey, u64)> = Vec::new();
        for (key, entry) in ready.graphs.iter().filter(|(key, entry)| !stays(key, entry)) {
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
            let may_go: u64 = victims.iter().map(|(.., bytes)| bytes).sum();
            return Err(Full { kept: ready.bytes - may_go });
        }
        victims.truncate(needed);
        let mut gone = Vec::with_capacity(needed);
        for (_, key, bytes) in &victims {
            gone.push(ready.graphs.remove(key));
            ready.bytes -= bytes;
            ready.counts.evicted += 1;
        }
        // Memory is given back without the lock, for which a running device may wait.
        drop(ready);
        drop(gone);
        Ok(victims.into_iter().map(|(_, key, _)| key).collect())
    }

    /// Counts a new graph's bytes, from now until it is dropped.
    pub(super) fn serve(&self, spec: GraphSpec, graph: Box<dyn PreparedGraph>) -> Served {
        let bytes = graph.bytes();
        let mut kept = lock(&self.kept);
        kept.bytes += bytes;
        kept.peak = kept.peak.max(kept.bytes);
        drop(kept);
        Served { spec, graph: Mutex::new(graph), bytes, kept: Arc::clone(&self.kept) }
    }

    /// Adds a graph for which there is room.
    pub(super) fn insert(&self, served: Served, asker: Asker<'_>) -> Arc<Served> {
        let mut ready = lock(&self.ready);
        ready.uses += 1;
        ready.counts.prepared += 1;
        ready.bytes += served.bytes;
        let (key, used, graph) = (served.spec.key.clone(), ready.uses, Arc::new(served));
        let entry = Entry { graph: Arc::clone(&graph), used, ahead: asker.is_preparer() };
        let old = ready.graphs.insert(key, entry);
        ready.bytes -= old.map_or(0, |old| old.graph.bytes);
        graph
    }

    /// Counts a graph that is not added, because there is no room.
    pub(super) fn pass(&self, served: Served) -> Arc<Served> {
        let mut ready = lock(&self.ready);
        ready.counts.prepared += 1;
        ready.counts.unkept += 1;
        Arc::new(served)
    }
}

impl Asker<'_> {
    fn is_preparer(self) -> bool {
        matches!(self, Asker::Preparer(_))
    }
}

impl Served {
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }
}
