//! SGLang's cache-aware routing.

use lapwing_plan::registry::Parameter;
use lapwing_traces::Nanos;

use super::blocks::blocks;
use super::entry::RouteEntry;
use super::route_policy::{Incoming, RoutePolicy};
use super::tree::BlockTree;
use super::worker::WorkerId;
use super::workers::Workers;

/// The rules of SGLang's router: workers are out of balance if the most and the least requests in flight differ by more than `abs`, and by
/// more than a factor of `rel`. Then the least loaded worker gets the request. Otherwise a prompt of which some worker has
/// more than the share `matching` goes to this one, of several to the one that has used it last; and any other to the least loaded worker.
/// The router remembers the prompts that it has sent, for each worker those of the `nodes` latest nodes of its tree; it is not told what
/// caches drop.
#[derive(Debug)]
pub struct CacheAware {
    matching: f64,
    abs: usize,
    rel: f64,
    nodes: usize,
    tree: Option<BlockTree>,
    /// Requests that went where their prompt was, to the least loaded worker because of balance, and there for want of a prompt.
    decisions: [u64; 3],
}

impl CacheAware {
    /// With these thresholds.
    pub fn new(matching: f64, abs: usize, rel: f64, nodes: usize) -> CacheAware {
        CacheAware { matching, abs, rel, nodes, tree: None, decisions: [0; 3] }
    }
}

impl Default for CacheAware {
    /// The thresholds of SGLang's code.
    fn default() -> CacheAware {
        CacheAware::new(0.5, 32, 1.1, 10_000)
    }
}

pub(super) const ENTRY: RouteEntry = RouteEntry::new(
    "cache-aware",
    "SGLang: where the prompt is cached, unless the load is out of balance",
    &[
        Parameter::new("match", "share of a prompt that a worker must have", 0.5, 0.0..=1.0),
        Parameter::new("abs", "difference of requests that is out of balance", 32.0, 0.0..=1e9),
        Parameter::new("rel", "ratio of requests that is out of balance", 1.1, 1.0..=1e9),
        Parameter::new("nodes", "nodes that are remembered of a worker", 10_000.0, 1.0..=1e9),
    ],
    |p| {
        let (abs, nodes) = (p.count("abs"), p.count("nodes"));
        Box::new(CacheAware::new(p.value("match"), abs, p.value("rel"), nodes))
    },
);

impl RoutePolicy for CacheAware {
    fn name(&self) -> &str {
        "cache-aware"
    }

    fn route(&mut self, request: &Incoming<'_>, workers: &Workers, now: Nanos) -> WorkerId {
        let tree = self.tree.get_or_insert_with(|| BlockTree::new(workers.count()));
        let blocks = blocks(request.ids);
        let (least, most) = workers.extremes();
        let unbalanced = most - least > self.abs && most as f64 > self.rel * least as f64;
        let way = tree.way(&blocks);
        let found = way
            .last()
            .filter(|step| !unbalanced && step.end as f64 > self.matching * blocks.len() as f64);
        let latest = found.and_then(|step| tree.workers(step).iter().max_by_key(|held| held.used));
        let worker = latest.map_or_else(|| workers.least(), |held| held.worker);
        let decision = match latest {
            Some(_) => 0,
            None if unbalanced => 1,
            None => 2,
        };
        self.decisions[decision] += 1;
        tree.insert(worker, &blocks, now);
        tree.limit(worker, self.nodes);
        worker
    }

    fn numbers(&self) -> Vec<(String, f64)> {
        let names = ["by prefix", "by balance", "without prefix"];
        names.iter().zip(self.decisions).map(|(name, n)| ((*name).to_owned(), n as f64)).collect()
    }
}
