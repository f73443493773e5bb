//! The states that are kept beside pages, of models whose layers have one.

use super::{KeptState, Namespace, NodeId, PrefixTree};
use lapwing_kernels::kv::KvPage;

impl PrefixTree {
    /// Keeps the states of all layers after `tokens`, if the tree has pages with all of these. The first ones that are kept stay.
    pub fn insert_state(&mut self, namespace: &Namespace, tokens: &[u32], place: KvPage) {
        let Some(root) = self.roots.get(namespace).copied() else { return };
        let (node, rows) = self.last_match(root, tokens);
        if rows < tokens.len() || rows == 0 {
            return;
        }
        self.touch(node);
        let states = &mut self.nodes[node].states;
        if let Err(at) = states.binary_search_by_key(&rows, |state| state.rows) {
            states.insert(at, KeptState { rows, place });
            self.state_comes(namespace, node, rows);
            self.tell();
        }
    }

    /// The states after the most of the first `tokens`, which count as used. `whole` if only ends of pages are of use.
    pub fn find_state(
        &mut self,
        namespace: &Namespace,
        tokens: &[u32],
        whole: bool,
    ) -> Option<KeptState> {
        let (mut node, rows) = self.last_match(*self.roots.get(namespace)?, tokens);
        let is_of_use = |state: &&KeptState| {
            state.rows <= rows && (!whole || state.rows.is_multiple_of(self.page_rows))
        };
        loop {
            if let Some(found) = self.nodes[node].states.iter().rev().find(is_of_use).cloned() {
                self.touch(node);
                return Some(found);
            }
            node = self.nodes[node].parent?;
        }
    }

    /// Drops the least recently used state that no sequence holds. Returns whether a state was dropped.
    pub fn free_state(&mut self) -> bool {
        let ends = self.nodes.iter().enumerate().flat_map(|(id, node)| {
            let free = node.states.iter().enumerate().filter(|(_, it)| !it.place.is_shared());
            free.map(move |(at, state)| (node.used, state.rows, id, at))
        });
        match ends.min() {
            Some((_, _, node, at)) => {
                let rows = self.nodes[node].states[at].rows;
                self.state_leaves(node, rows);
                self.nodes[node].states.remove(at);
                self.tell();
                true
            }
            None => false,
        }
    }

    /// Number of states in the tree.
    pub fn states(&self) -> usize {
        self.nodes.iter().map(|node| node.states.len()).sum()
    }

    /// Takes the states after more than the first `rows` rows of a node.
    pub(super) fn take_states(&mut self, node: NodeId, rows: usize) -> Vec<KeptState> {
        let end = self.start_of(node) + rows;
        let states = &mut self.nodes[node].states;
        states.split_off(states.partition_point(|state| state.rows <= end))
    }

    /// The node with the last of the tokens that the tree has, and the number of these tokens.
    fn last_match(&self, root: NodeId, tokens: &[u32]) -> (NodeId, usize) {
        let place = self.place(root, tokens);
        match place.partial {
            Some((node, _, rows)) => (node, place.rows + rows),
            None => (place.node, place.rows),
        }
    }

    /// Number of tokens before those of a node.
    pub(super) fn start_of(&self, node: NodeId) -> usize {
        self.nodes[node].start
    }
}
