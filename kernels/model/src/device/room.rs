//! Memory of a device's own, and what takes it.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::graph::{Graph, WeightId};
use crate::kv::{KvLayout, KvSize};
use crate::op::Op;

/// Memory of a device's own for weights, keys, values and states. What does not fit cannot be placed on the device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Room {
    /// Bytes for weights, keys, values and states.
    pub bytes: u64,
    /// The cache; empty where none is known.
    pub cache: CacheBytes,
}

/// Bytes of the parts of a KV cache, each of which a device may hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CacheBytes {
    /// Keys and values of each layer.
    pub layers: Arc<[u64]>,
    /// Each state at all places.
    pub states: Arc<[u64]>,
}

impl CacheBytes {
    /// The parts of a cache of that size.
    pub fn new(layout: &KvLayout, size: KvSize) -> CacheBytes {
        let all = |bytes: usize, count: u32| (bytes as u64).saturating_mul(u64::from(count));
        let pages = |layer| all(layout.layer(layer).page_bytes(), size.pages);
        let states = layout.states.iter().map(|state| all(state.bytes(), size.states));
        CacheBytes {
            layers: (0..layout.layers.len()).map(pages).collect(),
            states: states.collect(),
        }
    }
}

/// What nodes need of a memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RoomNeed {
    /// Bytes of matrices and tables, each counted once.
    pub weights: u64,
    /// Bytes of keys, values and states.
    pub kv: u64,
    /// Layers of the nodes.
    pub layers: usize,
}

impl Room {
    /// Part of a device's memory that weights, keys and values may take; the rest is for values between ops and for the driver.
    const SHARE: f64 = 0.9;

    /// The room in a memory of that many bytes.
    pub fn of_capacity(bytes: u64) -> Room {
        Room { bytes: (bytes as f64 * Room::SHARE) as u64, cache: CacheBytes::default() }
    }

    /// With a KV cache of that size, of which the device holds the layers whose attention it computes, and the states of its ops.
    #[must_use]
    pub fn with_cache(self, layout: &KvLayout, size: KvSize) -> Room {
        Room { cache: CacheBytes::new(layout, size), ..self }
    }

    /// What these nodes need of it.
    pub fn need(&self, graph: &Graph, nodes: impl IntoIterator<Item = usize>) -> RoomNeed {
        RoomNeed::of(graph, nodes, &self.cache)
    }
}

impl RoomNeed {
    /// What these nodes of a graph need of a cache and beside it. Layers that share keys and values need them once.
    pub fn of(
        graph: &Graph,
        nodes: impl IntoIterator<Item = usize>,
        cache: &CacheBytes,
    ) -> RoomNeed {
        let (mut weights, mut cached, mut layers) =
            (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        let mut states = BTreeSet::new();
        for node in nodes {
            let node = &graph.nodes()[node];
            states.extend(node.op.state());
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
        let kv = cached.iter().filter_map(|layer| cache.layers.get(*layer));
        let states = states.iter().filter_map(|state| cache.states.get(*state));
        RoomNeed {
            weights: weights.iter().map(bytes).sum(),
            kv: kv.chain(states).sum(),
            layers: layers.len(),
        }
    }

    /// All bytes.
    pub fn bytes(&self) -> u64 {
        self.weights + self.kv
    }
}
