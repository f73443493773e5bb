//! Drops pages when others need them.

use std::ops::Bound;

use foldhash::HashMap;
use lapwing_kernels::kv::KvPage;

use super::{KeptState, Namespace, Node, NodeId, PrefixTree};

/// The first pages of a node, and all before it, that are about to be leased.
#[derive(Clone, Copy, Default)]
struct Leased {
    node: NodeId,
    pages: usize,
}

impl PrefixTree {
    /// Number of pages that no sequence leases.
    pub fn unleased(&self) -> usize {
        self.unleased_pages().count()
    }

    /// Drops pages that no sequence leases, until `wanted` are dropped: the last ones of the leaf that was used
    /// least recently first. Drops none if fewer are unleased. Returns whether it has dropped them.
    pub fn free(&mut self, wanted: usize) -> bool {
        if !self.has_unleased(wanted, Leased::default()) {
            return false;
        }
        self.recent.forget();
        let (mut left, mut after) = (wanted, Bound::Unbounded);
        while left > 0 {
            let Some(leaf) = self.leaves.range((after, Bound::Unbounded)).next().copied() else {
                break;
            };
            let dropped = self.unleased_end(leaf.1, left);
            left -= dropped;
            self.report_drop(leaf.1, dropped);
            after = match dropped == self.nodes[leaf.1].pages.len() {
                // Its parent may be a leaf now, and come before others.
                true => Bound::Unbounded,
                false => Bound::Excluded(leaf),
            };
            self.shorten(leaf.1, dropped);
        }
        self.drop_empty_roots();
        self.tell();
        left == 0
    }

    /// Whether the pages of a text that the tree has can be leased, and so many others dropped as are then missing: `missing` of the number of
    /// the text's pages. If not, these count as used, as if they had been found.
    pub(crate) fn has_room(
        &mut self,
        namespace: &Namespace,
        tokens: &[u32],
        missing: impl FnOnce(usize) -> usize,
    ) -> bool {
        let Some(root) = self.roots.get(namespace) else {
            return self.has_unleased(missing(0), Leased::default());
        };
        let place = self.place(*root, tokens);
        let leased = Leased { node: place.node, pages: place.pages };
        let has_room = self.has_unleased(missing(place.rows / self.page_rows), leased);
        if !has_room {
            place.partial.into_iter().for_each(|(node, _, _)| self.touch(node));
            self.touch(place.node);
        }
        has_room
    }

    /// Whether no sequence leases at least `wanted` pages, apart from some that are about to be leased. One that leases a page leases all
    /// pages before it, so that only the ends of leaves are looked at, and of nodes behind which none is leased.
    fn has_unleased(&self, wanted: usize, leased: Leased) -> bool {
        let (mut found, mut unleased) = (0, HashMap::<NodeId, usize>::default());
        let mut is_enough = |leaf: NodeId| {
            let mut at = leaf;
            loop {
                let Node { pages, parent, .. } = &self.nodes[at];
                let about = if at == leased.node { leased.pages } else { 0 };
                let end = self.unleased_end(at, (wanted - found).min(pages.len() - about));
                found += end;
                let above = parent.filter(|above| self.nodes[*above].parent.is_some());
                let Some(above) = above.filter(|_| end == pages.len() && found < wanted) else {
                    return found >= wanted;
                };
                let children = unleased.entry(above).or_default();
                *children += 1;
                if *children < self.nodes[above].children.len() {
                    return false;
                }
                at = above;
            }
        };
        wanted == 0 || self.leaves.iter().any(|(_, leaf)| is_enough(*leaf))
    }

    /// Number of last pages of a node that no sequence leases, at most `most`. Those that one leases come first.
    fn unleased_end(&self, node: NodeId, most: usize) -> usize {
        let pages = &self.nodes[node].pages;
        match pages.last() {
            Some(last) if most > 0 && !last.is_shared() => {
                let end = &pages[pages.len() - most.min(pages.len())..];
                end.len() - end.partition_point(KvPage::is_shared)
            }
            _ => 0,
        }
    }

    fn drop_empty_roots(&mut self) {
        let PrefixTree { roots, nodes, vacant, .. } = self;
        roots.retain(|_, root| {
            let is_used = !nodes[*root].children.is_empty();
            if !is_used {
                vacant.push(*root);
            }
            is_used
        });
    }

    fn unleased_pages(&self) -> impl Iterator<Item = &KvPage> {
        let pages = self.nodes.iter().flat_map(|node| &node.pages);
        pages.filter(|page| !page.is_shared())
    }

    /// Drops the last `pages` pages of a leaf, and the leaf with its last page.
    pub(super) fn shorten(&mut self, leaf: NodeId, pages: usize) {
        if pages == 0 {
            return;
        }
        self.pages -= pages;
        let keep = self.nodes[leaf].pages.len() - pages;
        self.blocks_leave(leaf, keep);
        if keep > 0 {
            drop(self.take_states(leaf, keep * self.page_rows));
            let node = &mut self.nodes[leaf];
            node.pages.truncate(keep);
            node.tokens.truncate(keep * self.page_rows);
            return;
        }
        let key = self.key(leaf);
        let node = std::mem::take(&mut self.nodes[leaf]);
        self.leaves.remove(&(node.used, leaf));
        self.vacant.push(leaf);
        let Some(parent) = node.parent else { return };
        self.nodes[parent].children.remove(&key);
        let Node { children, parent: above, used, .. } = &self.nodes[parent];
        if children.is_empty() && above.is_some() {
            self.leaves.insert((*used, parent));
        }
    }

    /// Removes a partly filled last page all of whose tokens begin `rest`, which will take its place. Returns the states that it had.
    pub(super) fn drop_tail_within(
        &mut self,
        rest: &[u32],
        node: NodeId,
        page: usize,
        rows: usize,
    ) -> Vec<KeptState> {
        let tail = self.nodes[node].tokens.len() - page * self.page_rows;
        let is_prefix = tail == rows && rows < self.page_rows && rows < rest.len();
        if !is_prefix {
            return Vec::new();
        }
        let states = self.take_states(node, page * self.page_rows);
        self.shorten(node, 1);
        states
    }
}
