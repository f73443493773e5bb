//! A compressed radix tree over token ids, in units of KV pages.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound;

use lapwing_kernels::kv::KvPage;

use super::Namespace;

mod drops;
mod evict;
mod followed;
mod kept;
mod nodes;
mod recent;
mod states;
mod texts;

pub use drops::DroppedText;
use drops::Drops;
use followed::Following;
pub(crate) use kept::Kept;
pub(crate) use recent::Known;
use recent::Recent;

type NodeId = usize;

/// KV pages by the tokens that they hold and all tokens before them: a compressed radix tree, as in SGLang
/// (Zheng et al., 2024), whose edges are whole pages. Only the last page of a leaf may be partly filled.
///
/// Pages that a sequence leases, and those before them, are not dropped.
#[derive(Debug)]
pub struct PrefixTree {
    page_rows: usize,
    nodes: Vec<Node>,
    /// Unused places of `nodes`.
    vacant: Vec<NodeId>,
    /// Number of the latest node.
    latest: u64,
    roots: HashMap<Namespace, NodeId>,
    /// Leaves by their last use.
    leaves: BTreeSet<(u64, NodeId)>,
    clock: u64,
    pages: usize,
    recent: Recent,
    /// `None` unless somebody wants to know.
    drops: Option<Drops>,
    following: Following,
    /// Nodes and tokens that were looked at for texts.
    looks: Cell<u64>,
}

#[derive(Debug, Default)]
struct Node {
    /// `None` for a root.
    parent: Option<NodeId>,
    /// Number of the node, which no other one ever has.
    number: u64,
    /// Number of tokens before its own.
    start: usize,
    /// Tokens of its pages. Empty for a root.
    tokens: Vec<u32>,
    pages: Vec<KvPage>,
    /// By the tokens of their first page.
    children: BTreeMap<Box<[u32]>, NodeId>,
    /// The states after some of its tokens, ascending.
    states: Vec<KeptState>,
    /// Time of its last use.
    used: u64,
}

/// The states of all layers after the first tokens of a text.
#[derive(Clone, Debug)]
pub struct KeptState {
    /// Number of these tokens.
    pub rows: usize,
    /// Where they are.
    pub place: KvPage,
}

/// What the tree has of a text.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// Pages that are filled with the text's first tokens.
    pub pages: Vec<KvPage>,
    /// The page whose first rows hold the next tokens of the text, and the number of these rows. Its other
    /// rows hold other tokens, or none, so it must be copied.
    pub partial: Option<(KvPage, usize)>,
    /// The states after these rows, if they were looked for.
    pub state: Option<KeptState>,
    /// The text's first tokens that the tree has, with those behind the states.
    pub known: usize,
}

/// A text of the tree, from its first token to the end of a leaf.
#[derive(Clone, Debug)]
pub struct CachedText {
    /// Its namespace.
    pub namespace: Namespace,
    /// Its tokens.
    pub tokens: Vec<u32>,
    /// The pages that hold them; the last one may be partly filled.
    pub pages: Vec<KvPage>,
    /// The states that are kept of it, ascending.
    pub states: Vec<KeptState>,
}

/// A place in the tree: the end of the whole pages that a text has in common with it.
struct Place {
    /// The last node of which the text has a page, or the root.
    node: NodeId,
    /// Pages of this node that the text has.
    pages: usize,
    /// Rows of all whole pages that the text has.
    rows: usize,
    /// The node and the page in it that begin with the next tokens of the text, and how many of them.
    partial: Option<(NodeId, usize, usize)>,
}

impl PrefixTree {
    /// An empty tree of pages of `page_rows` rows (at least 1).
    pub fn new(page_rows: usize) -> PrefixTree {
        PrefixTree {
            page_rows: page_rows.max(1),
            nodes: Vec::new(),
            vacant: Vec::new(),
            latest: 0,
            roots: HashMap::new(),
            leaves: BTreeSet::new(),
            clock: 0,
            pages: 0,
            recent: Recent::default(),
            drops: None,
            following: Following::default(),
            looks: Cell::default(),
        }
    }

    /// Number of pages in the tree.
    pub fn pages(&self) -> usize {
        self.pages
    }

    /// Number of the first `tokens` whose rows the tree has.
    pub fn matched(&self, namespace: &Namespace, tokens: &[u32]) -> usize {
        let Some(root) = self.roots.get(namespace) else { return 0 };
        let place = self.place(*root, tokens);
        place.rows + place.partial.map_or(0, |(_, _, rows)| rows)
    }

    /// The pages of the longest prefix of `tokens` that the tree has, which counts as a use of them.
    pub fn find(&mut self, namespace: &Namespace, tokens: &[u32]) -> Found {
        self.find_after(namespace, tokens, 0)
    }

    /// As [`find`](PrefixTree::find), without the first `known` pages of those that it finds.
    pub(crate) fn find_after(
        &mut self,
        namespace: &Namespace,
        tokens: &[u32],
        known: usize,
    ) -> Found {
        let Some(root) = self.roots.get(namespace) else { return Found::default() };
        let place = self.place(*root, tokens);
        let partial = place.partial.map(|(node, page, rows)| {
            self.touch(node);
            (self.nodes[node].pages[page].clone(), rows)
        });
        self.touch(place.node);
        let all = place.rows / self.page_rows;
        let mut pages = Vec::with_capacity(all.saturating_sub(known));
        let (mut at, mut count, mut end) = (place.node, place.pages, all);
        while end > known {
            let node = &self.nodes[at];
            let first = (known + count).saturating_sub(end);
            pages.extend(node.pages[first..count].iter().rev().cloned());
            end -= count;
            let Some(parent) = node.parent else { break };
            (at, count) = (parent, self.nodes[parent].pages.len());
        }
        pages.reverse();
        let rows = partial.as_ref().map_or(0, |(_, rows)| *rows);
        let known = place.rows + rows;
        Found { pages, partial, state: None, known }
    }

    /// Adds the pages that hold `tokens`, except those whose tokens the tree has already. Nobody may write the
    /// rows of these tokens from now on. The last page may be partly filled.
    ///
    /// # Panics
    /// If there are fewer pages than the tokens fill.
    pub fn insert(&mut self, namespace: &Namespace, tokens: &[u32], pages: &[KvPage]) {
        if tokens.is_empty() && !self.roots.contains_key(namespace) {
            return;
        }
        let root = self.root(namespace);
        let place = self.place(root, tokens);
        self.add_rest(namespace, tokens, pages, place);
    }

    /// The root of a namespace.
    fn root(&mut self, namespace: &Namespace) -> NodeId {
        if let Some(root) = self.roots.get(namespace) {
            return *root;
        }
        let root = self.add(Node::default());
        self.roots.insert(namespace.clone(), root);
        root
    }

    /// Adds what a text has behind the place where it ends in the tree. Returns the node that has its end.
    fn add_rest(
        &mut self,
        namespace: &Namespace,
        tokens: &[u32],
        pages: &[KvPage],
        place: Place,
    ) -> NodeId {
        let rest = &tokens[place.rows..];
        let covered = place.partial.is_some_and(|(_, _, rows)| rows == rest.len());
        if rest.is_empty() || covered {
            let last = place.partial.map_or(place.node, |(node, _, _)| node);
            self.touch(last);
            return last;
        }
        self.recent.add(namespace, place.rows, rest);
        let first = place.rows / self.page_rows;
        let pages = &pages[first..first + rest.len().div_ceil(self.page_rows)];
        let tail =
            place.partial.map(|(node, page, rows)| self.drop_tail_within(rest, node, page, rows));
        let node = match place.pages < self.nodes[place.node].pages.len() {
            true => self.split(place.node, place.pages),
            false => place.node,
        };
        let node = self.append(node, rest, pages);
        self.nodes[node].states.extend(tail.into_iter().flatten());
        self.blocks_come(namespace, node);
        self.tell();
        node
    }

    fn place(&self, root: NodeId, tokens: &[u32]) -> Place {
        self.place_after(Place { node: root, pages: 0, rows: 0, partial: None }, tokens)
    }

    /// The place of a text that has all that is before a place.
    fn place_after(&self, mut place: Place, tokens: &[u32]) -> Place {
        loop {
            let Node { tokens: all, children, .. } = &self.nodes[place.node];
            let edge = &all[place.pages * self.page_rows..];
            let rest = &tokens[place.rows..];
            let same = common(edge, rest);
            let pages = same / self.page_rows;
            place.pages += pages;
            place.rows += pages * self.page_rows;
            self.looks.set(self.looks.get() + 1 + same as u64);
            if pages * self.page_rows < edge.len() {
                let rows = same % self.page_rows;
                place.partial = (rows > 0).then_some((place.node, place.pages, rows));
                return place;
            }
            let rest = &tokens[place.rows..];
            let whole = rest.get(..self.page_rows).and_then(|page| children.get(page));
            let Some(&child) = whole else {
                let (child, rows) = nearest(children, &rest[..rest.len().min(self.page_rows)]);
                place.partial = child.map(|child| (child, 0, rows));
                return place;
            };
            (place.node, place.pages) = (child, 0);
        }
    }
}

/// Length of the common beginning of two texts.
pub(crate) fn common(one: &[u32], other: &[u32]) -> usize {
    /// Tokens that are compared at once.
    const BLOCK: usize = 32;
    let blocks = one.chunks_exact(BLOCK).zip(other.chunks_exact(BLOCK));
    let same = blocks.take_while(|(one, other)| one == other).count() * BLOCK;
    let rest = one[same..].iter().zip(&other[same..]);
    same + rest.take_while(|(one, other)| one == other).count()
}

/// The child whose first page has the longest beginning in common with `tokens`, and its length. In
/// lexicographic order it is a neighbour of `tokens`.
fn nearest(children: &BTreeMap<Box<[u32]>, NodeId>, tokens: &[u32]) -> (Option<NodeId>, usize) {
    let mut before = children.range::<[u32], _>((Bound::Unbounded, Bound::Excluded(tokens)));
    let mut after = children.range::<[u32], _>((Bound::Included(tokens), Bound::Unbounded));
    let neighbours = before.next_back().into_iter().chain(after.next());
    let same = neighbours.map(|(key, child)| (common(key, tokens), *child));
    match same.filter(|(rows, _)| *rows > 0).max_by_key(|(rows, _)| *rows) {
        Some((rows, child)) => (Some(child), rows),
        None => (None, 0),
    }
}

#[cfg(test)]
mod tests;
