//! The texts of a tree.

use super::{CachedText, PrefixTree};

impl PrefixTree {
    /// The texts of all leaves, the least recently used first. Texts that begin alike have pages in common.
    /// While a page is held, it is not dropped.
    pub fn texts(&self) -> Vec<CachedText> {
        let mut names = vec![None; self.nodes.len()];
        self.roots.iter().for_each(|(name, root)| names[*root] = Some(name));
        let text = |(_, leaf): &(u64, usize)| {
            let mut path = vec![*leaf];
            while let Some(parent) = self.nodes[*path.last()?].parent {
                path.push(parent);
            }
            let namespace = names[path.pop()?].cloned()?;
            let nodes = || path.iter().rev().map(|node| &self.nodes[*node]);
            Some(CachedText {
                namespace,
                tokens: nodes().flat_map(|node| &node.tokens).copied().collect(),
                pages: nodes().flat_map(|node| &node.pages).cloned().collect(),
                states: nodes().flat_map(|node| &node.states).cloned().collect(),
            })
        };
        self.leaves.iter().filter_map(text).collect()
    }
}
