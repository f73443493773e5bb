//! Texts that become longer: each further token is added where the one before it is, without a way from the root.

use lapwing_kernels::kv::KvPage;

use super::{Namespace, Node, NodeId, Place, PrefixTree};

/// The first rows of a sequence, whose pages are in the tree, and which the sequence leases. They are always whole pages.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Kept {
    /// Number of these rows.
    pub(crate) rows: usize,
    /// The node that had the last of them; `None` if it was not noted. If it was divided since then, another one has them, and its place may
    /// be that of a node of another text.
    node: Option<NodeName>,
}

/// A node that may be gone.
#[derive(Clone, Copy, Debug)]
struct NodeName {
    node: NodeId,
    number: u64,
}

impl Kept {
    /// So many rows, wherever they are.
    pub(crate) fn rows(rows: usize) -> Kept {
        Kept { rows, node: None }
    }
}

impl PrefixTree {
    /// As [`insert`](PrefixTree::insert), of a sequence whose first rows are [`Kept`]. Returns the pages that the tree has in place of the
    /// sequence's own behind those, up to the last one that it had already. Its whole pages are then kept, once it leases these.
    pub(crate) fn keep(
        &mut self,
        namespace: &Namespace,
        tokens: &[u32],
        pages: &[KvPage],
        kept: &mut Kept,
    ) -> Vec<KvPage> {
        let place = match kept.node.and_then(|name| self.node_with(name, kept.rows)) {
            Some(node) => {
                let pages = (kept.rows - self.start_of(node)) / self.page_rows;
                self.place_after(Place { node, pages, rows: kept.rows, partial: None }, tokens)
            }
            None => {
                let root = self.root(namespace);
                self.place(root, tokens)
            }
        };
        let (known, had) = (kept.rows / self.page_rows, place.rows);
        let node = self.add_rest(namespace, tokens, pages, place);
        let rows = tokens.len() / self.page_rows * self.page_rows;
        let name = NodeName { node, number: self.nodes[node].number };
        *kept = Kept { rows, node: self.node_with(name, rows).map(|_| name) };
        match had / self.page_rows > known {
            true => self.find_after(namespace, &tokens[..had], known).pages,
            false => Vec::new(),
        }
    }

    /// Nodes and tokens that were looked at so far, for all texts that were added or looked for.
    pub fn looks(&self) -> u64 {
        self.looks.get()
    }

    /// A node, if it is still there and has the last one of so many rows of the texts that it belongs to.
    fn node_with(&self, NodeName { node, number }: NodeName, rows: usize) -> Option<NodeId> {
        let end = |node: &Node| node.start + node.tokens.len();
        let is_there = |it: &&Node| it.number == number && it.start < rows && rows <= end(it);
        self.nodes.get(node).filter(is_there).map(|_| node)
    }
}
