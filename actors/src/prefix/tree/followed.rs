//! The blocks of a tree, for followers of what it stores and removes.

use std::collections::HashMap;

use super::{Namespace, Node, NodeId, PrefixTree};
use crate::prefix::block::{
    BlockHash, CacheBatch, CacheEvent, CacheGroup, StoredBlocks, block_tokens,
};
use crate::prefix::follower::Follower;

/// The followers of a tree. Without any, no blocks are kept for them.
#[derive(Debug, Default)]
pub(super) enum Following {
    #[default]
    Inactive,
    Active(Box<Followed>),
    /// The engine has ended; there will be no followers.
    Ended,
}

/// Which blocks a tree has. A block within a page is in several nodes if texts part behind it in this page.
#[derive(Debug)]
pub(super) struct Followed {
    /// Tokens of a block; a page has whole ones.
    size: usize,
    /// The whole blocks of each node.
    blocks: Vec<Vec<BlockHash>>,
    /// In how many nodes a block is, or the states after it.
    held: HashMap<(CacheGroup, BlockHash), usize>,
    /// What was stored since the followers were told.
    stored: Vec<StoredBlocks>,
    /// What has left nodes since then, by group, the last ones of a text first. It may be in other nodes.
    left: [Vec<BlockHash>; 2],
    followers: Vec<Follower>,
}

/// A node of a text.
#[derive(Clone, Copy)]
struct Place<'a> {
    nodes: &'a [Node],
    node: NodeId,
    namespace: &'a Namespace,
}

impl Followed {
    /// All blocks of a tree.
    fn of(tree: &PrefixTree, size: usize) -> Followed {
        let (blocks, held) = (vec![Vec::new(); tree.nodes.len()], HashMap::new());
        let (left, followers) = (Default::default(), Vec::new());
        let mut all = Followed { size, blocks, held, stored: Vec::new(), left, followers };
        let nodes = &*tree.nodes;
        let children = |id: NodeId| nodes[id].children.values().rev().copied();
        for (namespace, root) in &tree.roots {
            let mut open: Vec<(NodeId, usize)> = children(*root).map(|id| (id, 0)).collect();
            while let Some((node, start)) = open.pop() {
                let place = Place { nodes, node, namespace };
                all.add_blocks(place);
                for state in &nodes[node].states {
                    all.add_state(place, state.rows - start);
                }
                let end = start + nodes[node].tokens.len();
                open.extend(children(node).map(|id| (id, end)));
            }
        }
        all
    }

    /// Adds the whole blocks of a node that it did not have before.
    fn add_blocks(&mut self, place: Place<'_>) {
        let Place { nodes, node, namespace } = place;
        let (had, size) = (self.blocks[node].len(), self.size);
        let before = self.block_before(place, had);
        let start = before.unwrap_or_else(|| BlockHash::start(namespace.as_deref()));
        let tokens = &nodes[node].tokens[had * size..];
        let blocks: Vec<BlockHash> = start.chain(tokens, size).collect();
        // Those that other nodes have come first: a node that has a block has those before it.
        let is_known = |hash: &&BlockHash| !self.hold(CacheGroup::Attention, **hash);
        let known = blocks.iter().filter(is_known).count();
        if known < blocks.len() {
            self.stored.push(StoredBlocks {
                group: CacheGroup::Attention,
                hashes: blocks[known..].to_vec(),
                parent: blocks[..known].last().copied().or(before),
                tokens: tokens[known * size..blocks.len() * size].to_vec(),
                block_tokens: size,
                namespace: namespace.clone(),
            });
        }
        self.blocks[node].extend(blocks);
    }

    /// Adds the states after so many rows of a node, if a block ends there.
    fn add_state(&mut self, place: Place<'_>, rows: usize) {
        let Some((at, hash)) = self.ending_at(place.node, rows) else { return };
        if self.hold(CacheGroup::States, hash) {
            self.stored.push(StoredBlocks {
                group: CacheGroup::States,
                hashes: vec![hash],
                parent: self.block_before(place, at),
                tokens: place.nodes[place.node].tokens[rows - self.size..rows].to_vec(),
                block_tokens: self.size,
                namespace: place.namespace.clone(),
            });
        }
    }

    /// The block before one of a node with this number.
    fn block_before(&self, Place { nodes, node, .. }: Place<'_>, at: usize) -> Option<BlockHash> {
        match at.checked_sub(1) {
            Some(before) => self.blocks[node].get(before).copied(),
            None => nodes[node].parent.and_then(|parent| self.blocks[parent].last().copied()),
        }
    }

    /// The block that ends after so many rows of a node, and its number.
    fn ending_at(&self, node: NodeId, rows: usize) -> Option<(usize, BlockHash)> {
        let at = (rows / self.size).checked_sub(1).filter(|_| rows.is_multiple_of(self.size))?;
        Some((at, *self.blocks[node].get(at)?))
    }

    /// One more node has a block. Returns whether it is the first.
    fn hold(&mut self, group: CacheGroup, hash: BlockHash) -> bool {
        let nodes = self.held.entry((group, hash)).or_default();
        *nodes += 1;
        *nodes == 1
    }

    /// A node has a block no longer. Returns whether none has it.
    fn release(&mut self, group: CacheGroup, hash: BlockHash) -> bool {
        let Some(nodes) = self.held.get_mut(&(group, hash)) else { return false };
        *nodes -= 1;
        let is_last = *nodes == 0;
        if is_last {
            self.held.remove(&(group, hash));
        }
        is_last
    }

    /// What has changed since this was last called.
    fn changes(&mut self) -> Option<CacheBatch> {
        let mut changes: Vec<CacheEvent> = self.stored.drain(..).map(CacheEvent::Stored).collect();
        for group in [CacheGroup::States, CacheGroup::Attention] {
            let mut hashes = std::mem::take(&mut self.left[group as usize]);
            hashes.retain(|hash| self.release(group, *hash));
            if !hashes.is_empty() {
                changes.push(CacheEvent::Removed { group, hashes });
            }
        }
        (!changes.is_empty()).then(|| changes.into())
    }
}

impl PrefixTree {
    /// Number of tokens of a block in events.
    pub fn block_tokens(&self) -> usize {
        block_tokens(self.page_rows)
    }

    /// The blocks of so many tokens, of which pages have whole ones, each after the one before it.
    pub fn blocks(&self, size: usize) -> Vec<StoredBlocks> {
        Followed::of(self, size).stored
    }

    /// Tells a follower of changes, in blocks of so many tokens, of which pages have whole ones. Returns whether it may.
    pub(in crate::prefix) fn follow(&mut self, follower: Follower, size: usize) -> bool {
        if let Following::Inactive = self.following {
            let followed = Followed { stored: Vec::new(), ..Followed::of(self, size) };
            self.following = Following::Active(Box::new(followed));
        }
        match &mut self.following {
            Following::Active(followed) => followed.followers.push(follower),
            Following::Inactive | Following::Ended => return false,
        }
        true
    }

    /// The blocks, if there are followers.
    pub(in crate::prefix) fn followed_blocks(&self) -> Option<Vec<StoredBlocks>> {
        match &self.following {
            Following::Active(followed) => Some(self.blocks(followed.size)),
            Following::Inactive | Following::Ended => None,
        }
    }

    /// Ends all events.
    pub(in crate::prefix) fn end_events(&mut self) {
        self.following = Following::Ended;
    }

    /// A node has tokens that it did not have before.
    pub(super) fn blocks_come(&mut self, namespace: &Namespace, node: NodeId) {
        let Following::Active(followed) = &mut self.following else { return };
        followed.blocks.resize(self.nodes.len(), Vec::new());
        followed.add_blocks(Place { nodes: &self.nodes, node, namespace });
    }

    /// States are kept after so many tokens of a text, which a node has.
    pub(super) fn state_comes(&mut self, namespace: &Namespace, node: NodeId, rows: usize) {
        let Some(start) = self.followed_start(node) else { return };
        let Following::Active(followed) = &mut self.following else { return };
        followed.add_state(Place { nodes: &self.nodes, node, namespace }, rows - start);
    }

    /// The first `pages` pages of a node are now in another one, `first`.
    pub(super) fn blocks_part(&mut self, node: NodeId, first: NodeId, pages: usize) {
        let Following::Active(followed) = &mut self.following else { return };
        followed.blocks.resize(self.nodes.len(), Vec::new());
        let rest = followed.blocks[node].split_off(pages * self.page_rows / followed.size);
        followed.blocks[first] = std::mem::replace(&mut followed.blocks[node], rest);
    }

    /// Only the first `pages` pages of a leaf are to stay.
    pub(super) fn blocks_leave(&mut self, leaf: NodeId, pages: usize) {
        let Some(start) = self.followed_start(leaf) else { return };
        let Following::Active(followed) = &mut self.following else { return };
        let rows = pages * self.page_rows;
        let states = self.nodes[leaf].states.iter().map(|state| state.rows - start);
        let states = states.filter(|state| *state > rows);
        let states = states.filter_map(|state| Some(followed.ending_at(leaf, state)?.1));
        let states: Vec<BlockHash> = states.collect();
        followed.left[CacheGroup::States as usize].extend(states);
        let blocks = &mut followed.blocks[leaf];
        let keep = blocks.len().min(rows / followed.size);
        followed.left[CacheGroup::Attention as usize].extend(blocks.drain(keep..).rev());
    }

    /// The states after so many tokens of a text are to be dropped.
    pub(super) fn state_leaves(&mut self, node: NodeId, rows: usize) {
        let Some(start) = self.followed_start(node) else { return };
        let Following::Active(followed) = &mut self.following else { return };
        let block = followed.ending_at(node, rows - start);
        followed.left[CacheGroup::States as usize].extend(block.map(|(_, hash)| hash));
    }

    /// Tells the followers what has changed.
    pub(super) fn tell(&mut self) {
        let Following::Active(followed) = &mut self.following else { return };
        if let Some(changes) = followed.changes() {
            followed.followers.retain(|follower| follower.tell(&changes));
        }
        if followed.followers.is_empty() {
            self.following = Following::Inactive;
        }
    }

    /// Number of tokens before those of a node, if there are followers.
    fn followed_start(&self, node: NodeId) -> Option<usize> {
        matches!(self.following, Following::Active(_)).then(|| self.start_of(node))
    }
}
