//! What is measured, the most important first.

use std::collections::BTreeMap;
use std::fmt;

use lapwing_kernels::device::{DeviceInfo, DeviceKind};
use lapwing_kernels::graph::{Graph, RowSet};
use lapwing_kernels::op::Op;
use lapwing_kernels::part::{OperandOrder, Part, Share};

use crate::plan::shape::OpShape;

/// Row counts: every power of two, and from 32 on what lies half-way.
const ROWS: [usize; 16] = [1, 2, 4, 8, 16, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024];
/// Row counts for a share of the features.
const SHARE_ROWS: [usize; 6] = [1, 16, 64, 128, 256, 512];
/// Rows before a chunk, for attention.
const CONTEXTS: [usize; 4] = [0, 128, 512, 1536];
/// Rows whose logits are wanted are few.
const SELECTED_MAX: usize = 16;

/// An op to measure, by nodes that have its shape.
#[derive(Clone, Debug)]
pub(super) struct Ask {
    pub(super) shape: OpShape,
    /// Nodes of that shape: runs take turns, since layers do not share their weights.
    pub(super) nodes: Vec<usize>,
    pub(super) part: Part,
    pub(super) m: usize,
    pub(super) context: usize,
    /// Its rows are those whose logits are wanted.
    pub(super) selected: bool,
}

impl fmt::Display for Ask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let OpShape { op, n, k, dtype, .. } = &self.shape;
        write!(f, "{op} {n}")?;
        if *k > 0 {
            write!(f, " × {k}")?;
        }
        if let Some(dtype) = dtype {
            write!(f, " {dtype}")?;
        }
        write!(f, ", {} rows", self.m)?;
        if self.context > 0 { write!(f, " after {}", self.context) } else { Ok(()) }
    }
}

/// Everything to measure on a device, whole ops first, then shares of their features.
pub(super) fn asks(
    graph: &Graph,
    device: &DeviceInfo,
    (chunk_rows, cache_rows, several): (usize, usize, bool),
) -> Vec<Ask> {
    let halves = [Share { from: 0, to: 1, of: 2 }, Share { from: 0, to: 1, of: 4 }];
    let mut asks = of_share(graph, device, (Share::WHOLE, chunk_rows, cache_rows));
    if several {
        for share in halves {
            asks.extend(of_share(graph, device, (share, chunk_rows, cache_rows)));
        }
    }
    asks
}

fn of_share(
    graph: &Graph,
    device: &DeviceInfo,
    (share, chunk_rows, cache_rows): (Share, usize, usize),
) -> Vec<Ask> {
    let orders = match device.kind {
        DeviceKind::Npu => &[OperandOrder::Straight, OperandOrder::Swapped][..],
        _ => &[OperandOrder::Straight],
    };
    let mut shapes: BTreeMap<(OpShape, bool), (Vec<usize>, Part)> = BTreeMap::new();
    for (at, node) in graph.nodes().iter().enumerate() {
        if !device.runs(&node.op) || (!share.is_whole() && !graph.can_cut_features(at..at + 1)) {
            continue;
        }
        for &order in orders {
            if order == OperandOrder::Swapped && !matches!(node.op, Op::MatMul { .. }) {
                continue;
            }
            let part = Part { features: share, order, ..Part::WHOLE };
            let shape = OpShape::of(graph, at, &part);
            if shape.n == 0 {
                continue;
            }
            let selected = graph.value(node.output).rows == RowSet::Selected;
            shapes.entry((shape, selected)).or_insert((Vec::new(), part)).0.push(at);
        }
    }
    let mut asks = Vec::new();
    for ((shape, selected), (nodes, part)) in shapes {
        for m in rows(device, (&share, selected, chunk_rows)) {
            let contexts = if shape.has_context() { &CONTEXTS[..] } else { &[0] };
            for &context in contexts.iter().filter(|context| **context + m <= cache_rows) {
                let graphs = if device.kind == DeviceKind::Npu { vec![m] } else { Vec::new() };
                let part = Part { graphs, ..part.clone() };
                let (shape, nodes) = (shape.clone(), nodes.clone());
                asks.push(Ask { shape, nodes, part, m, context, selected });
            }
        }
    }
    asks
}

fn rows(device: &DeviceInfo, (share, selected, chunk_rows): (&Share, bool, usize)) -> Vec<usize> {
    if device.kind == DeviceKind::Npu {
        let fit = device.sizes.iter().copied().filter(|size| *size < 2 * chunk_rows.max(16));
        return match selected {
            true => fit.take(1).collect(),
            false => fit.collect(),
        };
    }
    let grid = if share.is_whole() { &ROWS[..] } else { &SHARE_ROWS };
    let most = if selected { SELECTED_MAX } else { chunk_rows };
    let mut rows: Vec<usize> = grid.iter().copied().filter(|m| *m <= most).collect();
    if !selected && share.is_whole() && rows.last() != Some(&chunk_rows) {
        rows.push(chunk_rows);
    }
    rows
}
