//! Memory of a device's own, and what takes it.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::graph::{Graph, WeightId};
use crate::kv::KvLayout;
use crate::op::Op;

/// Memory of a device's own for weights, keys and values. What does not fit cannot be placed on the device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Room {
    /// Bytes for weights, keys and values.
    pub bytes: u64,
    /// Bytes of keys and values of each layer of the KV cache; empty where no cache is known.
    pub layer_kv: Arc<[u64]>,
}

/// What nodes need of a memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RoomNeed {
    /// Bytes of matrices and tables, each counted once.
    pub weights: u64,
    /// Bytes of keys and values.
    pub kv: u64,
    /// Layers of the nodes.
    pub layers: usize,
}

impl Room {
    /// Part of a device's memory that weights, keys and values may take; the rest is for values between ops and for the driver.
    const SHARE: f64 = 0.9;

    /// The room in a memory of that many bytes.
    pub fn of_capacity(bytes: u64) -> Room {
        Room { bytes: (bytes as f64 * Room::SHARE) as u64, layer_kv: Arc::default() }
    }

    /// With a KV cache of that many pages, of which the device holds the layers whose attention it computes.
    #[must_use]
    pub fn with_cache(self, layout: &KvLayout, pages: u32) -> Room {
        let bytes = |layer| layout.layer(layer).page_bytes() as u64 * u64::from(pages);
        Room { layer_kv: (0..layout.layers.len()).map(bytes).collect(), ..self }
    }

    /// What these nodes need of it.
    pub fn need(&self, graph: &Graph, nodes: impl IntoIterator<Item = usize>) -> RoomNeed {
        RoomNeed::of(graph, nodes, &self.layer_kv)
    }
}

impl RoomNeed {
    /// What these nodes of a graph need, with so many bytes of keys and values in each layer. Layers that share keys and values
    /// need them once.
    pub fn of(graph: &Graph, nodes: impl IntoIterator<Item = usize>, layer_kv: &[u64]) -> RoomNeed {
        let (mut weights, mut cached, mut layers) =
            (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        for node in nodes {
            let node = &graph.nodes()[node];
            match &node.op {
                Op::Embed { table, .. } => weights.extend([table.0]),
                Op::Attention(op) => cached.extend([op.layer]),
                op => weights.extend(op.matrices().into_iter().map(|WeightId(id)| id)),
            }
            layers.extend(node.layer);
        }
        let bytes = |id: &usize| {
            let spec = &graph.weights()[*id];
            (spec.rows * spec.dtype.row_bytes(spec.cols).unwrap_or(0)) as u64
        };
        RoomNeed {
            weights: weights.iter().map(bytes).sum(),
            kv: cached.iter().filter_map(|layer| layer_kv.get(*layer)).sum(),
            layers: layers.len(),
        }
    }

    /// All bytes.
    pub fn bytes(&self) -> u64 {
        self.weights + self.kv
    }
}
