//! L + M + P of a worker.

use lapwing_traces::Nanos;

use super::loads::Loads;
use crate::routing::blocks::BLOCK_TOKENS;
use crate::routing::tree::BlockTree;
use crate::routing::worker::WorkerId;
use crate::routing::workers::Workers;

/// What the costs of a prompt are computed from.
pub(super) struct Costs<'a> {
    pub(super) tree: &'a BlockTree,
    pub(super) loads: &'a Loads,
    /// Blocks of the prompt that each worker has.
    pub(super) cached: &'a [usize],
    pub(super) workers: &'a Workers,
    /// Tokens of the prompt.
    pub(super) tokens: usize,
    pub(super) now: Nanos,
}

impl Costs<'_> {
    /// The worker with the least L + M + P; of several, the first.
    pub(super) fn cheapest(&self, among: impl Iterator<Item = WorkerId>) -> Option<WorkerId> {
        let mut best: Option<(f64, WorkerId)> = None;
        for worker in among {
            let work = self.work(worker);
            // M is never negative, and is not needed of a worker that is too expensive without it.
            if best.is_none_or(|(least, _)| work < least) {
                let cost = work + self.eviction(worker);
                if best.is_none_or(|(least, _)| cost < least) {
                    best = Some((cost, worker));
                }
            }
        }
        best.map(|(_, worker)| worker)
    }

    fn missing(&self, worker: WorkerId) -> usize {
        self.tokens.saturating_sub(self.cached[worker.index()] * BLOCK_TOKENS)
    }

    /// L + P.
    fn work(&self, worker: WorkerId) -> f64 {
        let (missing, cached) = (self.missing(worker), self.cached[worker.index()] * BLOCK_TOKENS);
        self.loads.seconds(worker) + self.workers.spec(worker).prefill_seconds(missing, cached)
    }

    /// M.
    fn eviction(&self, worker: WorkerId) -> f64 {
        let spec = self.workers.spec(worker);
        let needed = self.tree.blocks_of(worker) * BLOCK_TOKENS + self.missing(worker);
        let (mut over, mut seconds) = (needed.saturating_sub(spec.kv_tokens), 0.0);
        for node in self.tree.oldest(worker) {
            if over == 0 {
                break;
            }
            let (before, end) = (node.start * BLOCK_TOKENS, node.end * BLOCK_TOKENS);
            let tokens = end - before;
            over = over.saturating_sub(tokens);
            if tokens > before {
                let share = self.tree.share(&node, self.now);
                seconds += spec.prefill_seconds(tokens, before) * share;
            }
        }
        seconds
    }
}
