//! Builds the stages of a route.

use std::ops::Range;
use std::sync::Arc;

use lapwing_kernels::device::Prepare;
use lapwing_kernels::graph::{Graph, RowSet};
use lapwing_kernels::part::{Part, Share};

use super::interface::PlanInput;
use super::options::OrderSwap;
use super::order::Matmuls;
use super::sizes;
use crate::blocks::BlockKind;
use crate::chunk::ChunkShape;
use crate::device::{DeviceId, needs_graphs};
use crate::error::PlanError;
use crate::route::Route;
use crate::stage::{Stage, StagePart, StageWork};

/// The stages of a route, added in order. Consecutive undivided stages on one device are joined.
pub(crate) struct Stages<'a> {
    pub(crate) input: &'a PlanInput<'a>,
    pub(crate) shape: &'a ChunkShape,
    swap: OrderSwap,
    prepare: Prepare,
    list: Vec<Stage>,
}

impl<'a> Stages<'a> {
    pub(crate) fn new(input: &'a PlanInput<'a>, shape: &'a ChunkShape, swap: OrderSwap) -> Self {
        Stages { input, shape, swap, prepare: Prepare::Ahead, list: Vec::new() }
    }

    /// Prepares graphs when a chunk needs them, instead of ahead.
    pub(crate) fn on_the_spot(mut self) -> Self {
        self.prepare = Prepare::OnTheSpot;
        self
    }

    /// All nodes of the graph.
    pub(crate) fn nodes(&self) -> Range<usize> {
        0..self.input.graph.nodes().len()
    }

    /// Rows that the nodes compute: the selected rows, or all rows of the chunk.
    pub(crate) fn rows(&self, nodes: &Range<usize>) -> usize {
        if is_selected(self.input.graph, nodes) { self.shape.selected } else { self.shape.rows }
    }

    /// Adds undivided nodes on a device that takes any number of rows.
    pub(crate) fn on(&mut self, device: DeviceId, nodes: Range<usize>) {
        self.push(Stage::whole(device, nodes));
    }

    /// Adds undivided nodes on the NPU, in graphs of these sizes. The nodes are split where the best
    /// operand order changes.
    pub(crate) fn on_npu(&mut self, device: DeviceId, nodes: Range<usize>, graphs: &[usize]) {
        let matmuls = Matmuls {
            graph: self.input.graph,
            features: Share::WHOLE,
            rows: graphs,
            swap: self.swap,
        };
        for (nodes, order) in matmuls.runs(nodes) {
            let part = Part { graphs: graphs.to_vec(), order, ..Part::WHOLE };
            let stage = Stage { prepare: self.prepare, ..Stage::one(device, nodes, part) };
            self.push(stage);
        }
    }

    /// Adds undivided nodes on any device; an NPU runs several standard graphs with little padding.
    pub(crate) fn on_any(&mut self, device: DeviceId, nodes: Range<usize>) {
        let info = &self.input.devices[device.0];
        if needs_graphs(info) {
            let graphs = sizes::multi(self.rows(&nodes), &info.sizes);
            self.on_npu(device, nodes, &graphs);
        } else {
            self.on(device, nodes);
        }
    }

    /// Adds nodes that are divided between devices. Chooses the operand order of the NPU's part.
    pub(crate) fn divided(&mut self, nodes: Range<usize>, parts: Vec<(DeviceId, Part)>) {
        let parts = parts.into_iter().map(|(device, part)| {
            let part = self.ordered(&nodes, part);
            StagePart { device, part }
        });
        let parts = parts.collect();
        self.push(Stage { work: StageWork::Nodes, nodes, parts, prepare: self.prepare });
    }

    /// The part with the operand order that suits the NPU's array, if it runs in graphs.
    pub(crate) fn ordered(&self, nodes: &Range<usize>, part: Part) -> Part {
        if part.graphs.is_empty() {
            return part;
        }
        let (graph, swap) = (self.input.graph, self.swap);
        let matmuls = Matmuls { graph, features: part.features, rows: &part.graphs, swap };
        let order = matmuls.order(nodes.clone());
        Part { order, ..part }
    }

    /// Adds a stage, or extends the last stage if one device can run both as one.
    pub(crate) fn push(&mut self, stage: Stage) {
        match self.list.last_mut() {
            Some(last) if joinable(last, &stage) => last.nodes.end = stage.nodes.end,
            _ => self.list.push(stage),
        }
    }

    /// Adds a stage that is never joined with the stage before it.
    pub(crate) fn push_apart(&mut self, stage: Stage) {
        self.list.push(stage);
    }

    /// Adds all nodes: static ops of all rows on the NPU, in graphs of these sizes; dynamic ops, and
    /// ops of the few selected rows, on the other device.
    pub(crate) fn static_on_npu(&mut self, npu: DeviceId, other: DeviceId, graphs: &[usize]) {
        let graph = self.input.graph;
        for (nodes, on_npu) in runs(self.nodes(), |node| is_static(graph, node)) {
            match on_npu {
                true => self.on_npu(npu, nodes, graphs),
                false => self.on(other, nodes),
            }
        }
    }

    /// The route of all stages.
    pub(crate) fn finish(self, reason: String) -> Result<Arc<Route>, PlanError> {
        Route::new(self.list, reason, None, self.input.route_for(self.shape))
    }

    /// The stages without a route.
    pub(crate) fn into_list(self) -> Vec<Stage> {
        self.list
    }
}

/// Whether one device can run both stages as one.
pub(crate) fn joinable(a: &Stage, b: &Stage) -> bool {
    a.parts.len() == 1 && a.parts == b.parts && a.prepare == b.prepare
}

/// Whether the nodes compute selected rows only.
pub(crate) fn is_selected(graph: &Graph, nodes: &Range<usize>) -> bool {
    graph.nodes()[nodes.clone()].iter().all(|n| graph.value(n.output).rows == RowSet::Selected)
}

/// Whether a node computes a row for each token, independent of the position of the row.
pub(crate) fn is_static(graph: &Graph, node: usize) -> bool {
    let dynamic = BlockKind::of(&graph.nodes()[node].op) == BlockKind::Dynamic;
    !dynamic && !is_selected(graph, &(node..node + 1))
}

/// Splits nodes into maximal runs with the same value of `of`.
pub(crate) fn runs<T: PartialEq>(
    nodes: Range<usize>,
    of: impl Fn(usize) -> T,
) -> Vec<(Range<usize>, T)> {
    let mut runs: Vec<(Range<usize>, T)> = Vec::new();
    for node in nodes {
        let value = of(node);
        match runs.last_mut() {
            Some((range, last)) if *last == value => range.end = node + 1,
            _ => runs.push((node..node + 1, value)),
        }
    }
    runs
}
