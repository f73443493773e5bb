//! Distributed deficit longest prefix match.

use foldhash::HashMap;
use lapwing_plan::registry::Parameter;
use lapwing_traces::Nanos;

use super::blocks::blocks;
use super::entry::RouteEntry;
use super::route_policy::{Incoming, RoutePolicy, SentRequest};
use super::tree::BlockTree;
use super::worker::WorkerId;
use super::workers::Workers;
use crate::policy::ClientId;

/// D²LPM (Cao et al., "Locality-aware Fair Scheduling in LLM Serving", 2025, algorithm 2): each client has credit at each worker.
/// A request goes to a worker where its client has credit, if possible to one of those that have the most of its prompt of all workers, and of these
/// to the one with the fewest requests in flight. It costs `prompt` for each token of its prompt when it is sent, and `output`
/// for each generated token when it ends. A client without credit anywhere gets `quantum` at every worker, as often as the least
/// indebted one needs. Workers are to order their queues by DLPM.
#[derive(Debug)]
pub struct D2lpm {
    quantum: f64,
    prompt: f64,
    output: f64,
    tree: Option<BlockTree>,
    clients: HashMap<ClientId, Vec<f64>>,
    refills: f64,
    by_prefix: u64,
}

impl D2lpm {
    /// A policy with these parameters. No client has credit yet.
    pub fn new(quantum: f64, prompt: f64, output: f64) -> D2lpm {
        let (tree, clients) = (None, HashMap::default());
        D2lpm { quantum, prompt, output, tree, clients, refills: 0.0, by_prefix: 0 }
    }
}

impl Default for D2lpm {
    /// The quantum of the published experiments.
    fn default() -> D2lpm {
        D2lpm::new(50_000.0, 1.0, 2.0)
    }
}

pub(super) const ENTRY: RouteEntry = RouteEntry::new(
    "d2lpm",
    "where the prompt is cached, while the client has credit there",
    &[
        Parameter::new("quantum", "credit of a refill", 50_000.0, 1e-3..=1e9),
        Parameter::new("prompt", "cost of a prompt token", 1.0, 0.0..=1000.0),
        Parameter::new("output", "cost of a generated token", 2.0, 0.0..=1000.0),
    ],
    |p| Box::new(D2lpm::new(p.value("quantum"), p.value("prompt"), p.value("output"))),
);

impl RoutePolicy for D2lpm {
    fn name(&self) -> &str {
        "d2lpm"
    }

    fn route(&mut self, request: &Incoming<'_>, workers: &Workers, now: Nanos) -> WorkerId {
        let D2lpm { quantum, tree, clients, refills, .. } = self;
        let tree = tree.get_or_insert_with(|| BlockTree::new(workers.count()));
        let credits = clients.entry(request.client.clone());
        let credits = credits.or_insert_with(|| vec![0.0; workers.count()]);
        let most = credits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        if most <= 0.0 {
            let rounds = (-most / *quantum).floor() + 1.0;
            *refills += rounds;
            credits.iter_mut().for_each(|credit| *credit += rounds * *quantum);
        }
        let blocks = blocks(request.ids);
        let way = tree.way(&blocks);
        let holders = way.last().map_or(&[][..], |step| tree.workers(step));
        let has_credit = |worker: &WorkerId| credits[worker.index()] > 0.0;
        let holders = holders.iter().map(|held| held.worker).filter(has_credit);
        let by_prefix = holders.min_by_key(|worker| (workers.load(*worker).in_flight(), *worker));
        self.by_prefix += u64::from(by_prefix.is_some());
        let by_load = || workers.by_load().find(has_credit);
        let worker = by_prefix.or_else(by_load).unwrap_or_else(|| workers.least());
        credits[worker.index()] -= self.prompt * request.ids.len() as f64;
        tree.insert(worker, &blocks, now);
        worker
    }

    fn finish(&mut self, request: &SentRequest<'_>, _now: Nanos) {
        if let Some(credits) = self.clients.get_mut(request.client) {
            credits[request.worker.index()] -= self.output * request.generated_tokens as f64;
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
            tree.forget(worker, &blocks(text), kept / super::BLOCK_TOKENS);
        }
    }

    fn numbers(&self) -> Vec<(String, f64)> {
        let by_prefix = ("by prefix".to_owned(), self.by_prefix as f64);
        vec![by_prefix, ("refills".to_owned(), self.refills)]
    }
}
