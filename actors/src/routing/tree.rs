//! What the caches of all workers have: one radix tree over blocks of tokens, each node with the workers that have it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use lapwing_traces::Nanos;

use super::worker::WorkerId;

mod nodes;
#[cfg(test)]
mod tests;

/// Place of a node.
pub(super) type NodeId = usize;

const ROOT: NodeId = 0;

/// Time in which a use counts e times less.
pub(super) const WINDOW: Duration = Duration::from_secs(180);

/// Prompts that workers have in their caches, in [blocks](super::blocks()): a compressed radix tree, as in SGLang's router and in Preble. A
/// worker that has a node has all nodes above it. A decision follows the prompt down the tree, whatever the number of workers.
#[derive(Debug)]
pub struct BlockTree {
    nodes: Vec<Node>,
    /// Unused places of `nodes`.
    vacant: Vec<NodeId>,
    /// By worker.
    held: Vec<OfWorker>,
    clock: u64,
    stamps: u64,
}

#[derive(Debug, Default)]
struct Node {
    parent: NodeId,
    /// Blocks before its own.
    start: usize,
    /// Empty for the root.
    blocks: Vec<u64>,
    /// By their first block.
    children: BTreeMap<u64, NodeId>,
    /// The workers that have it, in the order of their numbers; none at the root.
    workers: Vec<Held>,
    stamp: u64,
    /// Prompts that were sent with it, each counted less the longer ago that is.
    uses: f64,
    /// Time of the last one.
    at: Nanos,
}

impl Node {
    fn uses(&self, now: Nanos) -> f64 {
        self.uses * (-now.since(self.at).as_secs_f64() / WINDOW.as_secs_f64()).exp()
    }
}

/// A worker that has a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// The worker.
    pub worker: WorkerId,
    /// Time of its last use there, in steps of the tree's clock.
    pub used: u64,
}

#[derive(Clone, Debug, Default)]
struct OfWorker {
    /// Its nodes by their last use. A node comes before those above it.
    used: BTreeSet<(u64, NodeId)>,
    blocks: usize,
}

/// A node on the way of a prompt down the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    pub(super) node: NodeId,
    /// Number of the node, which no other node of the tree ever has.
    pub(super) stamp: u64,
    /// Blocks of the prompt before this node.
    pub start: usize,
    /// Blocks of the prompt up to the last one that is in this node.
    pub end: usize,
}

impl BlockTree {
    /// An empty tree of so many workers.
    pub fn new(workers: usize) -> BlockTree {
        BlockTree {
            nodes: vec![Node::default()],
            vacant: Vec::new(),
            held: vec![OfWorker::default(); workers],
            clock: 0,
            stamps: 0,
        }
    }

    /// The way of a prompt down the tree, from the first block on. All nodes on it are held by a worker.
    pub fn way(&self, blocks: &[u64]) -> Vec<Step> {
        let (mut at, mut end, mut way) = (ROOT, 0, Vec::new());
        while let Some(first) = blocks.get(end) {
            let Some(&child) = self.nodes[at].children.get(first) else { break };
            let Node { blocks: own, start, stamp, .. } = &self.nodes[child];
            let same = own.iter().zip(&blocks[end..]).take_while(|(one, other)| one == other);
            end += same.count();
            way.push(Step { node: child, stamp: *stamp, start: *start, end });
            if end < start + own.len() {
                break;
            }
            at = child;
        }
        way
    }

    /// The workers that have a node, in the order of their numbers.
    pub fn workers(&self, step: &Step) -> &[Held] {
        &self.nodes[step.node].workers
    }

    /// Writes how many of a prompt's blocks each worker has into `cached`, which has a place for each.
    pub fn cached(&self, way: &[Step], cached: &mut [usize]) {
        cached.fill(0);
        for step in way {
            for held in self.workers(step) {
                cached[held.worker.index()] = step.end;
            }
        }
    }

    /// Number of nodes that a worker has.
    pub fn nodes_of(&self, worker: WorkerId) -> usize {
        self.held[worker.index()].used.len()
    }

    /// Number of blocks that a worker has.
    pub fn blocks_of(&self, worker: WorkerId) -> usize {
        self.held[worker.index()].blocks
    }

    /// Each node of a worker, the least recently used first.
    pub(super) fn oldest(&self, worker: WorkerId) -> impl Iterator<Item = Step> {
        self.held[worker.index()].used.iter().map(|(_, node)| {
            let Node { start, blocks, stamp, .. } = &self.nodes[*node];
            Step { node: *node, stamp: *stamp, start: *start, end: start + blocks.len() }
        })
    }

    /// Share of the latest prompts that have a node, weighted by how long ago they were sent.
    pub(super) fn share(&self, step: &Step, now: Nanos) -> f64 {
        self.nodes[step.node].uses(now) / self.nodes[ROOT].uses(now).max(1e-9)
    }

    /// Whether a node is still there and a prompt with it was sent after a time.
    pub(super) fn is_used_since(&self, step: &Step, at: Nanos) -> bool {
        let node = &self.nodes[step.node];
        node.stamp == step.stamp && node.at > at
    }

    /// Takes a node from all workers, and the nodes above it that no prompt after a time had.
    pub(super) fn expire(&mut self, step: &Step, at: Nanos) {
        let mut node = step.node;
        if self.nodes[node].stamp != step.stamp {
            return;
        }
        while self.nodes[node].parent != ROOT && self.nodes[self.nodes[node].parent].at <= at {
            node = self.nodes[node].parent;
        }
        for Held { worker, .. } in self.nodes[node].workers.clone() {
            self.release(node, worker);
        }
    }

    /// A worker has a prompt from `now` on, or uses it again. Returns its last node; `None` of a prompt without a whole block.
    pub fn insert(&mut self, worker: WorkerId, blocks: &[u64], now: Nanos) -> Option<Step> {
        let last = self.place(blocks);
        let mut at = last.node;
        loop {
            let node = &mut self.nodes[at];
            (node.uses, node.at) = (node.uses(now) + 1.0, now);
            if at == ROOT {
                break;
            }
            self.touch(at, worker);
            at = self.nodes[at].parent;
        }
        (last.node != ROOT).then_some(last)
    }

    /// A worker has a text that no prompt has brought there. Returns its last node; `None` if that is known, or there is no whole block.
    pub fn learn(&mut self, worker: WorkerId, blocks: &[u64], now: Nanos) -> Option<Step> {
        let has = |step: &&Step| self.workers(step).iter().any(|held| held.worker == worker);
        if self.way(blocks).iter().take_while(has).last().map_or(0, |step| step.end) == blocks.len()
        {
            return None;
        }
        let last = self.place(blocks);
        let mut at = last.node;
        while at != ROOT {
            let node = &mut self.nodes[at];
            (node.uses, node.at) = (node.uses(now), now);
            self.touch(at, worker);
            at = self.nodes[at].parent;
        }
        Some(last)
    }

    /// A worker has no longer more than the first `kept` of these blocks.
    pub fn forget(&mut self, worker: WorkerId, blocks: &[u64], kept: usize) {
        let way = self.way(blocks);
        let Some(step) = way.iter().find(|step| step.end > kept) else { return };
        if step.start < kept {
            self.split(step.node, kept);
        }
        self.release(step.node, worker);
    }

    /// A worker has no longer the node of a step.
    pub fn drop_node(&mut self, worker: WorkerId, step: &Step) {
        self.release(step.node, worker);
    }

    /// Drops nodes of a worker, the least recently used first, until it has at most so many.
    pub fn limit(&mut self, worker: WorkerId, nodes_max: usize) {
        while self.nodes_of(worker) > nodes_max {
            let Some((_, oldest)) = self.held[worker.index()].used.first().copied() else { return };
            self.release(oldest, worker);
        }
    }
}
