//! The planned measurements of a device, most important first.

use std::collections::BTreeMap;
use std::fmt;

use lapwing_kernels::device::DeviceInfo;
use lapwing_kernels::graph::{Graph, RowSet};
use lapwing_kernels::op::Op;
use lapwing_kernels::part::{OperandOrder, Part, Share};

use lapwing_plan::shape::OpShape;

/// Row counts of undivided ops: powers of two, and from 32 also the midpoints between them.
const ROWS: [usize; 16] = [1, 2, 4, 8, 16, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024];
/// Row counts of a share of the output channels.
const SHARE_ROWS: [usize; 6] = [1, 16, 64, 128, 256, 512];
/// Contexts of attention, in rows.
const CONTEXTS: [usize; 4] = [0, 128, 512, 1536];
/// Maximum rows of ops on selected rows.
const SELECTED_MAX: usize = 16;

/// Maximum context plus rows of any measurement, for chunks of `chunk_rows` rows.
pub fn rows_max(chunk_rows: usize) -> usize {
    CONTEXTS[CONTEXTS.len() - 1] + chunk_rows
}

/// A planned measurement of an op shape.
#[derive(Clone, Debug)]
pub(super) struct Measurement {
    pub(super) shape: OpShape,
    /// Nodes of this shape. Runs cycle through them, since each layer has its own weights.
    pub(super) nodes: Vec<usize>,
    pub(super) part: Part,
    pub(super) m: usize,
    pub(super) context: usize,
    /// Whether all rows are selected, as an op on selected rows needs.
    pub(super) selected: bool,
    pub(super) priority: Priority,
}

/// Priority of a measurement, highest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Priority {
    /// The shape with the most work of each kind of op, so that every kind is measured.
    Kind,
    /// A few row counts of an undivided op.
    Whole,
    /// A few row counts of a share of the output channels.
    Share,
    /// The other row counts of an undivided op.
    Between,
    /// The other row counts of a share.
    BetweenShare,
}

impl Measurement {
    /// Work of a chunk in all nodes of this shape.
    fn work(&self) -> f64 {
        let positions = match self.shape.has_context() {
            true => self.shape.attended(self.m, self.context) / self.m as f64,
            false => 1.0,
        };
        self.shape.work(self.m) * positions * self.nodes.len() as f64
    }
}

impl fmt::Display for Measurement {
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

/// The measurements of a device by priority, and by descending work within a priority. `several`:
/// ops may be divided between several devices, so shares of them are measured too.
pub(super) fn measurements(
    graph: &Graph,
    device: &DeviceInfo,
    chunk_rows: usize,
    cache_rows: usize,
    several: bool,
) -> Vec<Measurement> {
    let shares = [Share { from: 0, to: 1, of: 2 }, Share { from: 0, to: 1, of: 4 }];
    let mut planned = of_share(graph, device, Share::WHOLE, chunk_rows, cache_rows);
    if several {
        for share in shares {
            planned.extend(of_share(graph, device, share, chunk_rows, cache_rows));
        }
    }
    let heavier = |a: &Measurement, b: &Measurement| b.work().total_cmp(&a.work());
    planned.sort_by(|a, b| a.priority.cmp(&b.priority).then_with(|| heavier(a, b)));
    let mut kinds: Vec<String> = Vec::new();
    for measurement in planned.iter_mut().take_while(|planned| planned.priority == Priority::Whole)
    {
        if !kinds.contains(&measurement.shape.op) {
            kinds.push(measurement.shape.op.clone());
            measurement.priority = Priority::Kind;
        }
    }
    planned.sort_by_key(|planned| planned.priority);
    planned
}

/// Nodes of one shape. One measurement is of all of them: the last layer's ops on selected rows take the time of the others.
struct Same {
    part: Part,
    nodes: Vec<usize>,
    /// How many of them compute selected rows only.
    selected: usize,
}

/// The measurements of all ops with one share of their output channels.
fn of_share(
    graph: &Graph,
    device: &DeviceInfo,
    share: Share,
    chunk_rows: usize,
    cache_rows: usize,
) -> Vec<Measurement> {
    let orders = match device.is_static() {
        true => &[OperandOrder::Straight, OperandOrder::Swapped][..],
        false => &[OperandOrder::Straight],
    };
    let mut shapes: BTreeMap<OpShape, Same> = BTreeMap::new();
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
            let same = shapes.entry(shape).or_insert(Same { part, nodes: Vec::new(), selected: 0 });
            same.nodes.push(at);
            same.selected += usize::from(graph.value(node.output).rows == RowSet::Selected);
        }
    }
    let mut planned = Vec::new();
    for (shape, Same { nodes, part, selected }) in shapes {
        let all = rows(device, &share, selected == nodes.len(), chunk_rows);
        let selected = selected > 0;
        let few = few(&all);
        for m in all {
            let contexts = if shape.has_context() { &CONTEXTS[..] } else { &[0] };
            let contexts = contexts.iter().copied().filter(|context| context + m <= cache_rows);
            let contexts: Vec<usize> = contexts.collect();
            for &context in &contexts {
                // Every later step of decode is one row, whatever the context.
                let is_few = few.contains(&m)
                    && (m == 1 || [contexts.first(), contexts.last()].contains(&Some(&context)));
                let priority = match (is_few, share.is_whole()) {
                    (true, true) => Priority::Whole,
                    (true, false) => Priority::Share,
                    (false, true) => Priority::Between,
                    (false, false) => Priority::BetweenShare,
                };
                let graphs = if device.is_static() { vec![m] } else { Vec::new() };
                let part = Part { graphs, ..part.clone() };
                let (shape, nodes) = (shape.clone(), nodes.clone());
                planned.push(Measurement { shape, nodes, part, m, context, selected, priority });
            }
        }
    }
    planned
}

/// The first, the middle and the last row count.
fn few(rows: &[usize]) -> Vec<usize> {
    let at = |at: usize| rows.get(at).copied();
    [at(0), at(rows.len() / 2), rows.last().copied()].into_iter().flatten().collect()
}

/// Row counts of the measurements of an op.
fn rows(device: &DeviceInfo, share: &Share, selected: bool, chunk_rows: usize) -> Vec<usize> {
    if device.is_static() {
        let fit = device.sizes.iter().copied().filter(|size| *size < 2 * chunk_rows.max(16));
        let smallest = device.sizes.first().copied().unwrap_or(0).max(SELECTED_MAX);
        return fit.filter(|size| !selected || *size <= smallest).collect();
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
    use lapwing_kernels::device::DeviceKind;
    use lapwing_kernels::formats::DType;
    use lapwing_kernels::graph::{NewNode, WeightSpec};

    /// A wide matmul in three layers, a narrow one in one layer, and a norm.
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
        let op = node(Op::RmsNorm { weight: Some(gain), group: 64, eps: 1e-5 });
        x = g.push(NewNode { inputs: &[x], ..op });
        let op = node(Op::MatMul { weight: narrow, bias: None });
        g.push(NewNode { inputs: &[x], width: 32, ..op });
        g
    }

    #[test]
    fn every_kind_comes_first_and_then_the_ops_with_the_most_work() {
        let sizes = Vec::new();
        let device = DeviceInfo::new("gpu", DeviceKind::Gpu).with_graphs(sizes, None);
        let planned = measurements(&graph(), &device, 512, 1024, true);
        let kinds: Vec<&str> = planned
            .iter()
            .take_while(|a| a.priority == Priority::Kind)
            .map(|a| &*a.shape.op)
            .collect();
        assert_eq!(kinds.len(), 3, "{kinds:?}");
        assert!(planned.is_sorted_by_key(|planned| planned.priority));
        // After one op of each kind, the matmul of three layers comes before the one of one layer.
        let wide = planned.iter().position(|a| a.nodes.len() == 3 && a.shape.n == 64);
        let narrow = planned.iter().position(|a| a.shape.n == 32 && a.shape.op == "matmul");
        assert!(wide < narrow, "{wide:?} {narrow:?}");
        for rank in [Priority::Whole, Priority::Share, Priority::Between, Priority::BetweenShare] {
            let works = planned.iter().filter(|a| a.priority == rank).map(Measurement::work);
            let works: Vec<f64> = works.collect();
            assert!(works.is_sorted_by(|a, b| a >= b) && !works.is_empty(), "{rank:?} {works:?}");
        }
    }

    #[test]
    fn an_op_on_selected_rows_is_measured_with_the_same_op_on_all_rows() {
        let mut g = graph();
        let last = g.output();
        let gain =
            g.add_weight(WeightSpec { name: "w".into(), rows: 1, cols: 64, dtype: DType::Q8_0 });
        let node = |op| NewNode { op, inputs: &[], width: 32, layer: None, role: "test" };
        let op = Op::RmsNorm { weight: Some(gain), group: 32, eps: 1e-5 };
        let all = g.push(NewNode { inputs: &[last], ..node(op.clone()) });
        let some = g.push(NewNode { inputs: &[all], ..node(Op::SelectRows) });
        g.push(NewNode { inputs: &[some], ..node(op) });
        let device = DeviceInfo::new("cpu", DeviceKind::Cpu);
        let planned = measurements(&g, &device, 512, 1024, false);
        let mut points = std::collections::HashSet::new();
        for Measurement { shape, m, context, .. } in &planned {
            assert!(points.insert((shape, m, context)), "{shape:?}, {m} rows, twice");
        }
        let norms = planned.iter().filter(|one| one.shape.op == "rms_norm" && one.shape.n == 32);
        assert!(norms.clone().all(|one| one.nodes.len() == 2 && one.selected));
        assert_eq!(norms.map(|one| one.m).max(), Some(512));
    }
}
