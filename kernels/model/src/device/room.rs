//! Memory of a device's own, and what takes it.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use super::info::DeviceInfo;
use crate::formats::DType;
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
}

/// How many bytes a matrix takes in the memory of a device, by its format, output channels and input channels.
#[derive(Clone, Copy, Debug)]
pub struct Packing(fn(DType, usize, usize) -> u64);

impl Packing {
    /// As in the model's file.
    pub const FILE: Packing =
        Packing(|dtype, rows, cols| (rows * dtype.row_bytes(cols).unwrap_or(0)) as u64);

    /// As a back end states it.
    pub const fn new(bytes: fn(DType, usize, usize) -> u64) -> Packing {
        Packing(bytes)
    }

    /// Bytes of a matrix.
    pub fn bytes(self, dtype: DType, rows: usize, cols: usize) -> u64 {
        (self.0)(dtype, rows, cols)
    }
}

/// A node on a device, with the experts that the device computes if it does not compute all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeOnDevice {
    /// The node.
    pub node: usize,
    /// As [`Part::experts`](crate::part::Part::experts).
    pub experts: Option<Range<usize>>,
}

impl From<usize> for NodeOnDevice {
    fn from(node: usize) -> NodeOnDevice {
        NodeOnDevice { node, experts: None }
    }
}

impl DeviceInfo {
    /// What these nodes need of its memory.
    pub fn need<N: Into<NodeOnDevice>>(
        &self,
        graph: &Graph,
        nodes: impl IntoIterator<Item = N>,
    ) -> RoomNeed {
        let none = CacheBytes::default();
        let cache = self.room.as_ref().map_or(&none, |room| &room.cache);
        RoomNeed::of(graph, nodes, cache, self.packing)
    }
}

/// Matrices of one shape.
#[derive(Debug)]
struct Matrices {
    /// Output channels of each.
    rows: usize,
    /// Which of them: experts, or the only one.
    which: Range<usize>,
}

impl RoomNeed {
    /// What these nodes of a graph need of a cache and beside it. Layers that share keys and values need them once, and so do nodes that
    /// share a matrix.
    pub fn of<N: Into<NodeOnDevice>>(
        graph: &Graph,
        nodes: impl IntoIterator<Item = N>,
        cache: &CacheBytes,
        packing: Packing,
    ) -> RoomNeed {
        let (mut cached, mut layers) = (BTreeSet::new(), BTreeSet::new());
        let mut states = BTreeSet::new();
        // By weight and the first row of an expert.
        let mut weights: BTreeMap<(usize, usize), Matrices> = BTreeMap::new();
        let mut add = |WeightId(id): WeightId, first, rows, which: Range<usize>| {
            let known = weights.entry((id, first));
            let known = known.or_insert_with(|| Matrices { rows, which: which.clone() });
            known.which = known.which.start.min(which.start)..known.which.end.max(which.end);
        };
        for NodeOnDevice { node, experts } in nodes.into_iter().map(Into::into) {
            let node = &graph.nodes()[node];
            let rows = |WeightId(id): WeightId| graph.weights()[id].rows;
            states.extend(node.op.state());
            match &node.op {
                Op::Embed { table, .. } => add(*table, 0, rows(*table), 0..1),
                Op::MatMul { weight, .. } => add(*weight, 0, rows(*weight), 0..1),
                Op::Experts(op) => {
                    let own = experts.unwrap_or(0..op.count);
                    let matrices = op.matrices();
                    matrices.for_each(|of| add(of.weight, of.first, of.rows, own.clone()));
                }
                Op::Attention(op) => cached.extend([op.layer]),
                _ => {}
            }
            layers.extend(node.layer);
        }
        let bytes = |(key, of): (&(usize, usize), &Matrices)| {
            let spec = &graph.weights()[key.0];
            of.which.len() as u64 * packing.bytes(spec.dtype, of.rows, spec.cols)
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
