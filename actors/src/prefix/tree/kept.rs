//! Texts that become longer: each further token is added where the one before it is, without a way from the root.

use lapwing_kernels::kv::KvPage;

use super::{Namespace, NodeId, Place, PrefixTree};

/// The first rows of a sequence, whose pages are in the tree, and which the sequence leases. They are always whole pages.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Kept {
    /// Number of these rows.
    pub(crate) rows: usize,
    /// The node that had the last of them; `None` if it was not noted. The node stays while the rows are leased, but another one may have
    /// them if it was divided.
    node: Option<NodeId>,
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
        let place = match kept.node.filter(|node| self.has_row(*node, kept.rows)) {
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
        *kept = Kept { rows, node: Some(node).filter(|node| self.has_row(*node, rows)) };
        match had / self.page_rows > known {
            true => self.find_after(namespace, &tokens[..had], known).pages,
            false => Vec::new(),
        }
    }

    /// Nodes and tokens that were looked at so far, for all texts that were added or looked for.
    pub fn looks(&self) -> u64 {
        self.looks.get()
    }

    /// Whether the last one of so many rows, of a text that a node belongs to, is in this node.
    fn has_row(&self, node: NodeId, rows: usize) -> bool {
        let end = |node: &super::Node| node.start + node.tokens.len();
        self.nodes.get(node).is_some_and(|it| it.start < rows && rows <= end(it))
    }
}
