//! Stages under construction.

use std::ops::Range;
use std::sync::Arc;

use lapwing_kernels::device::{DeviceKind, Prepare};
use lapwing_kernels::graph::{Graph, RowSet};
use lapwing_kernels::part::{Part, Share};

use super::options::OrderSwap;
use super::order::Products;
use super::{ChunkShape, PlanInput};
use crate::blocks::BlockKind;
use crate::{DeviceId, PlanError, Route, Stage, StagePart, StageWork};

/// Stages of a route, first to last. Neighbours on one device with no cut become one stage.
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

    /// Graphs are prepared when they are needed.
    pub(crate) fn on_the_spot(mut self) -> Self {
        self.prepare = Prepare::OnTheSpot;
        self
    }

    /// Number of the chunk's nodes.
    pub(crate) fn nodes(&self) -> Range<usize> {
        0..self.input.graph.nodes().len()
    }

    /// Rows that the nodes work on.
    pub(crate) fn rows(&self, nodes: &Range<usize>) -> usize {
        if is_selected(self.input.graph, nodes) { self.shape.selected } else { self.shape.rows }
    }

    /// Whole nodes on a device that takes any number of rows.
    pub(crate) fn on(&mut self, device: DeviceId, nodes: Range<usize>) {
        self.push(Stage::whole(device, nodes));
    }

    /// Whole nodes on the NPU, in graphs of those rows.
    pub(crate) fn on_npu(&mut self, device: DeviceId, nodes: Range<usize>, graphs: &[usize]) {
        let products = Products {
            graph: self.input.graph,
            features: Share::WHOLE,
            rows: graphs,
            swap: self.swap,
        };
        for (nodes, order) in products.runs(nodes) {
            let part = Part { graphs: graphs.to_vec(), order, ..Part::WHOLE };
            let stage = Stage { prepare: self.prepare, ..Stage::one(device, nodes, part) };
            self.push(stage);
        }
    }

    /// Whole nodes on any device; an NPU runs as many graphs as it takes to have little padding.
    pub(crate) fn on_any(&mut self, device: DeviceId, nodes: Range<usize>) {
        let info = &self.input.devices[device.0];
        if info.kind == DeviceKind::Npu {
            let graphs = super::sizes::multi(self.rows(&nodes), &info.sizes);
            self.on_npu(device, nodes, &graphs);
        } else {
            self.on(device, nodes);
        }
    }

    /// Nodes that several devices divide. The order of array processors is set here.
    pub(crate) fn cut(&mut self, nodes: Range<usize>, parts: Vec<(DeviceId, Part)>) {
        let parts = parts.into_iter().map(|(device, mut part)| {
            let (graph, swap) = (self.input.graph, self.swap);
            let rows = part.graphs.clone();
            if self.input.devices[device.0].kind == DeviceKind::Npu {
                let products = Products { graph, features: part.features, rows: &rows, swap };
                part.order = products.order(nodes.clone());
            }
            StagePart { device, part }
        });
        let parts = parts.collect();
        self.push(Stage { work: StageWork::Nodes, nodes, parts, prepare: self.prepare });
    }

    /// A stage; it joins the one before it if that is on the same device.
    pub(crate) fn push(&mut self, stage: Stage) {
        match self.list.last_mut() {
            Some(last) if joinable(last, &stage) => last.nodes.end = stage.nodes.end,
            _ => self.list.push(stage),
        }
    }

    /// A stage that stays apart.
    pub(crate) fn push_apart(&mut self, stage: Stage) {
        self.list.push(stage);
    }

    /// Static ops of all rows on the NPU, in graphs of those rows; everything else on the other
    /// device. Rows that were selected for their logits are few, and stay there too.
    pub(crate) fn static_on_npu(&mut self, npu: DeviceId, other: DeviceId, graphs: &[usize]) {
        let graph = self.input.graph;
        for (nodes, on_npu) in runs(self.nodes(), |node| is_static(graph, node)) {
            match on_npu {
                true => self.on_npu(npu, nodes, graphs),
                false => self.on(other, nodes),
            }
        }
    }

    pub(crate) fn finish(self, reason: String) -> Result<Arc<Route>, PlanError> {
        Route::new(self.list, reason, None, self.input.route_for(self.shape))
    }

    /// The stages so far.
    pub(crate) fn into_list(self) -> Vec<Stage> {
        self.list
    }
}

/// Whether one device can run both as one stage.
pub(crate) fn joinable(a: &Stage, b: &Stage) -> bool {
    a.parts.len() == 1 && a.parts == b.parts && a.prepare == b.prepare
}

/// Whether all values that the nodes write have rows for selected tokens only.
pub(crate) fn is_selected(graph: &Graph, nodes: &Range<usize>) -> bool {
    graph.nodes()[nodes.clone()].iter().all(|n| graph.value(n.output).rows == RowSet::Selected)
}

/// Whether a node does the same whatever the position of its rows, and has a row for each token.
pub(crate) fn is_static(graph: &Graph, node: usize) -> bool {
    let dynamic = BlockKind::of(&graph.nodes()[node].op) == BlockKind::Dynamic;
    !dynamic && !is_selected(graph, &(node..node + 1))
}

/// Longest runs of nodes for which `of` says the same.
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
