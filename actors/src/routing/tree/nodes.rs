//! Nodes of the tree: how they come, are split and go.

use super::{BlockTree, Held, Node, NodeId, ROOT, Step};
use crate::routing::worker::WorkerId;

impl BlockTree {
    /// The node that ends with the last of these blocks.
    pub(super) fn place(&mut self, blocks: &[u64]) -> Step {
        let way = self.way(blocks);
        let mut at = way.last().map_or(ROOT, |step| step.node);
        let end = way.last().map_or(0, |step| step.end);
        if at != ROOT && end < self.nodes[at].start + self.nodes[at].blocks.len() {
            at = self.split(at, end);
        }
        if let Some(first) = blocks.get(end) {
            let (parent, blocks) = (at, blocks[end..].to_vec());
            let child = self.add(Node { parent, start: end, blocks, ..Node::default() });
            self.nodes[at].children.insert(*first, child);
            at = child;
        }
        let Node { start, stamp, .. } = self.nodes[at];
        Step { node: at, stamp, start, end: blocks.len() }
    }

    fn add(&mut self, node: Node) -> NodeId {
        self.stamps += 1;
        let node = Node { stamp: self.stamps, ..node };
        if let Some(place) = self.vacant.pop() {
            self.nodes[place] = node;
            return place;
        }
        self.nodes.push(node);
        self.nodes.len() - 1
    }

    /// Makes the blocks of a node before `end` a node of their own, above it. Returns that one.
    pub(super) fn split(&mut self, at: NodeId, end: usize) -> NodeId {
        let node = &mut self.nodes[at];
        let rest = node.blocks.split_off(end - node.start);
        let first = Node {
            parent: node.parent,
            start: node.start,
            blocks: std::mem::replace(&mut node.blocks, rest),
            workers: node.workers.clone(),
            uses: node.uses,
            at: node.at,
            ..Node::default()
        };
        node.start = end;
        let (key, below, parent) = (first.blocks[0], node.blocks[0], first.parent);
        let above = self.add(first);
        self.nodes[at].parent = above;
        self.nodes[above].children.insert(below, at);
        self.nodes[parent].children.insert(key, above);
        for Held { worker, used } in self.nodes[above].workers.clone() {
            self.held[worker.index()].used.insert((used, above));
        }
        above
    }

    pub(super) fn touch(&mut self, at: NodeId, worker: WorkerId) {
        self.clock += 1;
        let of = &mut self.held[worker.index()];
        let Node { workers, blocks, .. } = &mut self.nodes[at];
        let used = self.clock;
        match workers.binary_search_by_key(&worker, |held| held.worker) {
            Ok(place) => {
                of.used.remove(&(workers[place].used, at));
                workers[place].used = used;
            }
            Err(place) => {
                workers.insert(place, Held { worker, used });
                of.blocks += blocks.len();
            }
        }
        of.used.insert((used, at));
    }

    /// Takes a node and all below it from a worker. Nodes that no worker has any more are dropped.
    pub(super) fn release(&mut self, at: NodeId, worker: WorkerId) {
        let (mut left, mut empty) = (vec![at], Vec::new());
        while let Some(at) = left.pop() {
            let Node { workers, blocks, children, .. } = &mut self.nodes[at];
            let found = workers.binary_search_by_key(&worker, |held| held.worker);
            let Ok(place) = found else { continue };
            let Held { used, .. } = workers.remove(place);
            left.extend(children.values());
            let of = &mut self.held[worker.index()];
            of.used.remove(&(used, at));
            of.blocks -= blocks.len();
            if workers.is_empty() {
                empty.push(at);
            }
        }
        for at in empty.into_iter().rev() {
            let Node { parent, blocks, .. } = std::mem::take(&mut self.nodes[at]);
            self.nodes[parent].children.remove(&blocks[0]);
            self.vacant.push(at);
        }
    }
}
