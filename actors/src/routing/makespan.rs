//! The smallest finish time.

use foldhash::HashMap;
use lapwing_plan::registry::Parameter;
use lapwing_traces::Nanos;

use super::blocks::{BLOCK_TOKENS, blocks};
use super::entry::RouteEntry;
use super::route_policy::{Incoming, RoutePolicy, SentRequest};
use super::tree::BlockTree;
use super::worker::WorkerId;
use super::workers::Workers;

/// List scheduling on workers of different speeds (Graham, 1966): gives each request to the worker that would be done first with all
/// that it has and the request, (work of its requests that have not ended + work of this one) / speed. Work is prompt tokens that are not cached +
/// `output` · tokens asked for. On equal workers the last one ends at most 2 − 1/n times later than possible, if the work is known
/// and workers do one request after the other.
#[derive(Debug)]
pub struct MinMakespan {
    output: f64,
    tree: Option<BlockTree>,
    work: Vec<f64>,
    cached: Vec<usize>,
    requests: HashMap<u64, f64>,
}

impl MinMakespan {
    /// With the work of a generated token, in prompt tokens.
    pub fn new(output: f64) -> MinMakespan {
        let (tree, work, cached) = (None, Vec::new(), Vec::new());
        MinMakespan { output, tree, work, cached, requests: HashMap::default() }
    }
}

impl Default for MinMakespan {
    /// As the queue policy `sjf` counts work.
    fn default() -> MinMakespan {
        MinMakespan::new(8.0)
    }
}

pub(super) const ENTRY: RouteEntry = RouteEntry::new(
    "min-makespan",
    "the worker that would be done first, by its work and its speed",
    &[Parameter::new("output", "work of a generated token, in prompt tokens", 8.0, 0.0..=1e6)],
    |p| Box::new(MinMakespan::new(p.value("output"))),
);

impl RoutePolicy for MinMakespan {
    fn name(&self) -> &str {
        "min-makespan"
    }

    fn route(&mut self, request: &Incoming<'_>, workers: &Workers, now: Nanos) -> WorkerId {
        let tree = self.tree.get_or_insert_with(|| BlockTree::new(workers.count()));
        self.work.resize(workers.count(), 0.0);
        self.cached.resize(workers.count(), 0);
        let blocks = blocks(request.ids);
        tree.cached(&tree.way(&blocks), &mut self.cached);
        let output = self.output * request.tokens_max as f64;
        let work = |worker: WorkerId| {
            let cached = self.cached[worker.index()] * BLOCK_TOKENS;
            request.ids.len().saturating_sub(cached) as f64 + output
        };
        let end = |worker: WorkerId| {
            (self.work[worker.index()] + work(worker)) / workers.spec(worker).speed
        };
        let ends = workers.ids().map(|worker| (end(worker), worker));
        let first = ends.min_by(|one, other| one.0.total_cmp(&other.0));
        let worker = first.map_or_else(|| workers.least(), |(_, worker)| worker);
        let work = work(worker);
        self.work[worker.index()] += work;
        self.requests.insert(request.number, work);
        tree.insert(worker, &blocks, now);
        worker
    }

    fn finish(&mut self, request: &SentRequest<'_>, _now: Nanos) {
        let work = self.requests.remove(&request.number).unwrap_or(0.0);
        if let Some(left) = self.work.get_mut(request.worker.index()) {
            *left = (*left - work).max(0.0);
        }
    }

    fn cached(&mut self, worker: WorkerId, text: &[u32], workers: &Workers, now: Nanos) {
        let tree = self.tree.get_or_insert_with(|| BlockTree::new(workers.count()));
        tree.learn(worker, &blocks(text), now);
    }

    fn hears_evictions(&self) -> bool {
        true
    }

    fn evicted(&mut self, worker: WorkerId, text: &[u32], kept: usize) {
        if let Some(tree) = &mut self.tree {
            tree.forget(worker, &blocks(text), kept / BLOCK_TOKENS);
        }
    }
}
