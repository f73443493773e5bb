//! Memory of a device's own, and what takes it.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use super::info::DeviceInfo;
use crate::formats::DType;
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
        let layer_kv = self.room.as_ref().map_or(&[][..], |room| &room.layer_kv);
        RoomNeed::of(graph, nodes, layer_kv, self.packing)
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
    /// What these nodes of a graph need, with so many bytes of keys and values in each layer. Layers that share keys and values
    /// need them once, and so do nodes that share a matrix.
    pub fn of<N: Into<NodeOnDevice>>(
        graph: &Graph,
        nodes: impl IntoIterator<Item = N>,
        layer_kv: &[u64],
        packing: Packing,
    ) -> RoomNeed {
        let (mut cached, mut layers) = (BTreeSet::new(), BTreeSet::new());
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
