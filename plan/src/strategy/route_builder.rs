//! Builds a route stage by stage.

use std::ops::Range;
use std::sync::Arc;

use lapwing_kernels::device::Prepare;
use lapwing_kernels::graph::{Graph, RowSet};
use lapwing_kernels::part::{Part, Share};

use super::interface::PlanInput;
use super::options::OrderSwap;
use super::order::Matmuls;
use super::sizes;
use crate::chunk::ChunkShape;
use crate::device::{DeviceId, needs_graphs};
use crate::error::PlanError;
use crate::route::Route;
use crate::stage::{Stage, StagePart, StageWork};

/// Builds a route: stages are added in the order of the nodes, and consecutive undivided stages on one device are joined.
///
/// ```
/// use std::sync::Arc;
/// use lapwing_kernels::device::DeviceKind;
/// use lapwing_kernels::op::Op;
/// use lapwing_plan::strategy::{ChunkShape, PlanInput, RouteBuilder};
/// use lapwing_plan::{PlanError, Route};
///
/// /// Attention on the CPU, all else on the GPU.
/// fn route(input: &PlanInput<'_>, shape: &ChunkShape) -> Result<Arc<Route>, PlanError> {
///     let (cpu, gpu) = (input.need("mine", DeviceKind::Cpu)?, input.need("mine", DeviceKind::Gpu)?);
///     let mut route = RouteBuilder::new(input, shape);
///     let attends = |node: usize| matches!(input.graph.nodes()[node].op, Op::Attention(_));
///     for (nodes, attends) in route.runs(attends) {
///         route.on(if attends { cpu } else { gpu }, nodes);
///     }
///     route.finish("attention on the CPU".to_owned())
/// }
/// ```
pub struct RouteBuilder<'a> {
    pub(crate) input: &'a PlanInput<'a>,
    pub(crate) shape: &'a ChunkShape,
    swap: OrderSwap,
    prepare: Prepare,
    list: Vec<Stage>,
}

impl<'a> RouteBuilder<'a> {
    /// No stages yet, of a route for this shape.
    pub fn new(input: &'a PlanInput<'a>, shape: &'a ChunkShape) -> Self {
        let (swap, prepare) = (OrderSwap::default(), Prepare::Ahead);
        RouteBuilder { input, shape, swap, prepare, list: Vec::new() }
    }

    /// Whether an NPU may swap the operands of matmuls. It may by default.
    #[must_use]
    pub fn order_swap(mut self, swap: OrderSwap) -> Self {
        self.swap = swap;
        self
    }

    /// Has graphs prepared when a chunk needs them, instead of ahead.
    #[must_use]
    pub fn on_the_spot(mut self) -> Self {
        self.prepare = Prepare::OnTheSpot;
        self
    }

    /// All nodes of the graph.
    pub fn nodes(&self) -> Range<usize> {
        0..self.input.graph.nodes().len()
    }

    /// Splits all nodes into the longest runs of nodes with the same answer of `of`.
    pub fn runs<T: PartialEq>(&self, of: impl Fn(usize) -> T) -> Vec<(Range<usize>, T)> {
        runs(self.nodes(), of)
    }

    /// Rows that the nodes compute: all rows of the chunk, or those that need logits.
    pub fn rows(&self, nodes: &Range<usize>) -> usize {
        if is_selected(self.input.graph, nodes) { self.shape.selected } else { self.shape.rows }
    }

    /// Adds nodes, all of them on one device. If it runs prepared graphs only, it gets those of its standard sizes that
    /// pad the rows little.
    pub fn on(&mut self, device: DeviceId, nodes: Range<usize>) {
        let info = &self.input.devices[device.0];
        if needs_graphs(info) {
            let graphs = sizes::multi(self.rows(&nodes), &info.sizes);
            self.on_npu(device, nodes, &graphs);
        } else {
            self.push(Stage::whole(device, nodes));
        }
    }

    /// Adds nodes, all of them on one device that runs prepared graphs: those of these rows, one after another. The nodes
    /// are split where the best operand order changes.
    pub fn on_npu(&mut self, device: DeviceId, nodes: Range<usize>, graphs: &[usize]) {
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

    /// Adds nodes that several devices run together, each a part of the rows or of the output channels. The parts must tile
    /// the values. The operand order of parts in graphs is chosen here.
    pub fn divided(&mut self, nodes: Range<usize>, parts: Vec<(DeviceId, Part)>) {
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
        for (nodes, on_npu) in self.runs(|node| is_static(graph, node)) {
            match on_npu {
                true => self.on_npu(npu, nodes, graphs),
                false => self.on(other, nodes),
            }
        }
    }

    /// The route of all stages.
    ///
    /// # Errors
    /// As [`Route::new`].
    pub fn finish(self, reason: String) -> Result<Arc<Route>, PlanError> {
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

/// Whether a node computes a row for each token, and static graphs can hold it.
pub(crate) fn is_static(graph: &Graph, node: usize) -> bool {
    graph.nodes()[node].op.info().is_static && !is_selected(graph, &(node..node + 1))
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
