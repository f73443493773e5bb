//! What a step reads between two uses of the same weights. An op that runs again and again alone would find its weights in the
//! caches, and seem faster than it is in a model that they cannot hold.

use lapwing_kernels::cpu::Caches;
use lapwing_kernels::device::{Batch, DeviceInfo};
use lapwing_kernels::graph::Graph;
use lapwing_kernels::ops::OpKind;

/// Bytes of the caches where the system does not tell them.
const CACHES: u64 = 32 << 20;

/// The products of a model, of which a device runs some between two runs of a measured op.
pub(super) struct Between {
    /// Nodes, and the bytes that each reads for one row.
    products: Vec<(usize, u64)>,
    /// The next one.
    next: usize,
    /// Bytes that replace what the caches held.
    enough: u64,
}

impl Between {
    /// The products that a device runs.
    pub(super) fn new(graph: &Graph, info: &DeviceInfo) -> Between {
        let mut row = Batch::default();
        row.push(&[0], 0, vec![0], 0..1);
        let runs = |node: &usize| {
            let op = &graph.nodes()[*node].op;
            op.info().kind == OpKind::Product && info.runs(op)
        };
        let nodes = (0..graph.nodes().len()).filter(runs);
        let largest = Caches::of_machine().largest.map_or(CACHES, |bytes| bytes as u64);
        // Twice their size: they keep no strict order of use.
        let enough = 2 * largest;
        let mut bytes = 0;
        // A device with memory of its own copies what it runs: no more than is used even where the largest product is left out.
        let products = nodes.map(|node| (node, graph.cost(node, &row).bytes));
        let products = products.take_while(|(_, of_this)| {
            let is_wanted = bytes < 2 * enough;
            bytes += of_this;
            is_wanted
        });
        Between { products: products.collect(), next: 0, enough }
    }

    /// The nodes to run before `node` is measured again: as many as fill the caches, and each at most once, as in a step.
    pub(super) fn nodes(&mut self, node: usize) -> Vec<usize> {
        let mut taken = Vec::new();
        let mut bytes = 0;
        for _ in 0..self.products.len() {
            if bytes >= self.enough {
                break;
            }
            let (other, of_other) = self.products[self.next];
            self.next = (self.next + 1) % self.products.len();
            if other != node {
                taken.push(other);
                bytes += of_other;
            }
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_products_between_fill_the_caches_and_leave_out_the_measured_one() {
        let mut between =
            Between { products: vec![(1, 10), (4, 10), (6, 10), (9, 10)], next: 0, enough: 20 };
        assert_eq!(between.nodes(1), [4, 6]);
        assert_eq!(between.nodes(1), [9, 4]);
        between.enough = 1000;
        assert_eq!(between.nodes(6), [9, 1, 4]);
        between.products.clear();
        assert_eq!(between.nodes(6), Vec::<usize>::new());
    }
}
