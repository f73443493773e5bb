//! Nodes of the tree: how they are added, divided and used.

use std::collections::BTreeMap;

use lapwing_kernels::kv::KvPage;

use super::{Node, NodeId, PrefixTree};

impl PrefixTree {
    /// Adds pages after a node all of whose pages are filled. Returns the node that has them.
    pub(super) fn append(&mut self, to: NodeId, tokens: &[u32], pages: &[KvPage]) -> NodeId {
        self.pages += pages.len();
        let node = &mut self.nodes[to];
        if node.children.is_empty() && node.parent.is_some() {
            node.tokens.extend_from_slice(tokens);
            node.pages.extend_from_slice(pages);
            self.touch(to);
            return to;
        }
        let start = node.start + node.tokens.len();
        let (parent, tokens, pages) = (Some(to), tokens.to_vec(), pages.to_vec());
        let key = tokens[..tokens.len().min(self.page_rows)].into();
        let child = self.add(Node { parent, start, tokens, pages, ..Node::default() });
        self.nodes[to].children.insert(key, child);
        self.touch(child);
        child
    }

    /// Divides a node after its first `pages` pages, of which it has more. Returns the node of the first ones.
    pub(super) fn split(&mut self, at: NodeId, pages: usize) -> NodeId {
        let later = self.take_states(at, pages * self.page_rows);
        let states = std::mem::replace(&mut self.nodes[at].states, later);
        let Node { parent, start, tokens, pages: all, used, .. } = &mut self.nodes[at];
        let (rest, rest_pages) = (tokens.split_off(pages * self.page_rows), all.split_off(pages));
        let first = Node {
            number: 0,
            parent: *parent,
            start: *start,
            tokens: std::mem::replace(tokens, rest),
            pages: std::mem::replace(all, rest_pages),
            children: BTreeMap::new(),
            states,
            used: *used,
        };
        *start += pages * self.page_rows;
        let key = first.tokens[..self.page_rows].to_vec();
        let first = self.add(first);
        self.blocks_part(at, first, pages);
        let rest_key = self.key(at);
        self.nodes[first].children.insert(rest_key, at);
        if let Some(parent) = self.nodes[at].parent.replace(first) {
            self.nodes[parent].children.insert(key.into(), first);
        }
        first
    }

    pub(super) fn add(&mut self, node: Node) -> NodeId {
        self.latest += 1;
        let node = Node { number: self.latest, ..node };
        if let Some(id) = self.vacant.pop() {
            self.nodes[id] = node;
            return id;
        }
        self.nodes.push(node);
        self.nodes.len() - 1
    }

    /// Records a use of a node, and of all nodes above it.
    pub(super) fn touch(&mut self, node: NodeId) {
        self.clock += 1;
        let mut next = Some(node);
        while let Some(at) = next {
            let node = &mut self.nodes[at];
            let is_leaf = node.children.is_empty() && node.parent.is_some();
            let before = std::mem::replace(&mut node.used, self.clock);
            if is_leaf {
                self.leaves.remove(&(before, at));
                self.leaves.insert((self.clock, at));
            }
            next = node.parent;
        }
    }

    /// Tokens of a node's first page.
    pub(super) fn key(&self, node: NodeId) -> Box<[u32]> {
        let tokens = &self.nodes[node].tokens;
        tokens[..tokens.len().min(self.page_rows)].into()
    }
}
