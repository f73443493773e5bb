//! What a tree has dropped, for those who remember what it has.

use super::{Node, NodeId, PrefixTree};

/// A text of which a tree has dropped the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DroppedText {
    /// Its tokens, with those that were dropped.
    pub tokens: Vec<u32>,
    /// Number of its first tokens that the tree still has.
    pub kept: usize,
}

#[derive(Debug)]
pub(super) struct Drops {
    /// A text is reported when it has fewer whole blocks of so many tokens.
    block: usize,
    texts: Vec<DroppedText>,
}

impl PrefixTree {
    /// Reports from now on what it drops, in whole blocks of so many tokens (at least 1).
    pub fn report_drops(&mut self, block: usize) {
        self.drops = Some(Drops { block: block.max(1), texts: Vec::new() });
    }

    /// What it has dropped since this was last called, in the order in which it was dropped.
    pub fn take_drops(&mut self) -> Vec<DroppedText> {
        self.drops.as_mut().map(|drops| std::mem::take(&mut drops.texts)).unwrap_or_default()
    }

    /// Reports that the last `pages` pages of a leaf are about to be dropped.
    pub(super) fn report_drop(&mut self, leaf: NodeId, pages: usize) {
        let Some(Drops { block, texts }) = &mut self.drops else { return };
        let Node { start, tokens: own, pages: all, .. } = &self.nodes[leaf];
        let length = start + own.len();
        let kept = start + own.len().min((all.len() - pages) * self.page_rows);
        if kept / *block < length / *block {
            let path = |node: &NodeId| self.nodes[*node].parent;
            let path: Vec<NodeId> = std::iter::successors(Some(leaf), path).collect();
            let tokens = path.iter().rev().flat_map(|node| &self.nodes[*node].tokens);
            texts.push(DroppedText { tokens: tokens.copied().collect(), kept });
        }
    }
}
