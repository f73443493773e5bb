//! What is measured, the most important first.

use std::collections::BTreeMap;
use std::fmt;

use lapwing_kernels::device::{DeviceInfo, DeviceKind};
use lapwing_kernels::graph::{Graph, RowSet};
use lapwing_kernels::op::Op;
use lapwing_kernels::part::{OperandOrder, Part, Share};

use lapwing_plan::shape::{OpShape, seen};

/// Row counts: every power of two, and from 32 on what lies half-way.
const ROWS: [usize; 16] = [1, 2, 4, 8, 16, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024];
/// Row counts for a share of the features.
const SHARE_ROWS: [usize; 6] = [1, 16, 64, 128, 256, 512];
/// Rows before a chunk, for attention.
const CONTEXTS: [usize; 4] = [0, 128, 512, 1536];
/// Rows whose logits are wanted are few.
const SELECTED_MAX: usize = 16;

/// Most rows that any op sees, in chunks of so many.
pub fn rows_max(chunk_rows: usize) -> usize {
    CONTEXTS[CONTEXTS.len() - 1] + chunk_rows
}

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
    /// What is more important comes first.
    pub(super) rank: Rank,
}

/// Importance, the highest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rank {
    /// The shape of its kind of op that has most to compute: no kind is left without a time.
    Kind,
    /// A few row counts of a whole shape.
    Whole,
    /// A few row counts of a share of the features.
    Share,
    /// Row counts between those of a whole shape.
    Between,
    /// Row counts between those of a share.
    BetweenShare,
}

impl Ask {
    /// What a chunk of so many rows computes in all nodes of the shape.
    fn work(&self) -> f64 {
        let positions = match self.shape.has_context() {
            true => seen(self.m, self.context, self.shape.window) / self.m as f64,
            false => 1.0,
        };
        self.shape.work(self.m) * positions * self.nodes.len() as f64
    }
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

/// Everything to measure on a device: by rank, and within a rank what has most to compute first.
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
    let heavier = |a: &Ask, b: &Ask| b.work().total_cmp(&a.work());
    asks.sort_by(|a, b| a.rank.cmp(&b.rank).then_with(|| heavier(a, b)));
    let mut kinds: Vec<String> = Vec::new();
    for ask in asks.iter_mut().take_while(|ask| ask.rank == Rank::Whole) {
        if !kinds.contains(&ask.shape.op) {
            kinds.push(ask.shape.op.clone());
            ask.rank = Rank::Kind;
        }
    }
    asks.sort_by_key(|ask| ask.rank);
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
        let all = rows(device, (&share, selected, chunk_rows));
        let few = few(&all);
        for m in all {
            let contexts = if shape.has_context() { &CONTEXTS[..] } else { &[0] };
            let contexts = contexts.iter().copied().filter(|context| context + m <= cache_rows);
            let contexts: Vec<usize> = contexts.collect();
            for &context in &contexts {
                let is_few = few.contains(&m)
                    && [contexts.first(), contexts.last()].contains(&Some(&context));
                let rank = match (is_few, share.is_whole()) {
                    (true, true) => Rank::Whole,
                    (true, false) => Rank::Share,
                    (false, true) => Rank::Between,
                    (false, false) => Rank::BetweenShare,
                };
                let graphs = if device.kind == DeviceKind::Npu { vec![m] } else { Vec::new() };
                let part = Part { graphs, ..part.clone() };
                let (shape, nodes) = (shape.clone(), nodes.clone());
                asks.push(Ask { shape, nodes, part, m, context, selected, rank });
            }
        }
    }
    asks
}

/// The least, the middle and the most.
fn few(rows: &[usize]) -> Vec<usize> {
    let at = |at: usize| rows.get(at).copied();
    [at(0), at(rows.len() / 2), rows.last().copied()].into_iter().flatten().collect()
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

#[cfg(test)]
mod tests {
    use super::*;
    use lapwing_kernels::graph::{NewNode, WeightSpec};
    use lapwing_kernels::quant::DType;

    /// A wide product in three layers, a narrow one in one, and a norm.
    fn graph() -> Graph {
        let mut g = Graph::default();
        let mut weight = |rows, cols| {
            g.add_weight(WeightSpec { name: "w".into(), rows, cols, dtype: DType::Q8_0 })
        };
        let (table, gain, wide, narrow) =
            (weight(8, 64), weight(1, 64), weight(64, 64), weight(32, 64));
        let node = |op| NewNode { op, inputs: &[], width: 64, layer: Some(0), role: "test" };
        let mut x = g.push(node(Op::Embed { table, scale: 1.0 }));
        for _ in 0..3 {
            let op = node(Op::MatMul { weight: wide, bias: None });
            x = g.push(NewNode { inputs: &[x], ..op });
        }
        let op = node(Op::RmsNorm { weight: gain, eps: 1e-5 });
        x = g.push(NewNode { inputs: &[x], ..op });
        let op = node(Op::MatMul { weight: narrow, bias: None });
        g.push(NewNode { inputs: &[x], width: 32, ..op });
        g
    }

    #[test]
    fn what_takes_most_of_a_chunk_is_not_left_out_first_and_no_kind_is_left_out() {
        let sizes = Vec::new();
        let device = DeviceInfo::new("gpu", DeviceKind::Gpu).with_graphs(sizes, None);
        let asks = asks(&graph(), &device, (512, 1024, true));
        let kinds: Vec<&str> =
            asks.iter().take_while(|a| a.rank == Rank::Kind).map(|a| &*a.shape.op).collect();
        assert_eq!(kinds.len(), 3, "{kinds:?}");
        assert!(asks.is_sorted_by_key(|ask| ask.rank));
        // After one of each kind, the product of three layers at most rows comes first.
        let wide = asks.iter().position(|a| a.nodes.len() == 3 && a.shape.n == 64);
        let narrow = asks.iter().position(|a| a.shape.n == 32 && a.shape.op == "matmul");
        assert!(wide < narrow, "{wide:?} {narrow:?}");
        for rank in [Rank::Whole, Rank::Share, Rank::Between, Rank::BetweenShare] {
            let works = asks.iter().filter(|a| a.rank == rank).map(Ask::work);
            let works: Vec<f64> = works.collect();
            assert!(works.is_sorted_by(|a, b| a >= b) && !works.is_empty(), "{rank:?} {works:?}");
        }
    }
}
