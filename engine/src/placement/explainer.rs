//! Explains routes: the placement of each of their stages.

use std::sync::Arc;

use lapwing_kernels::device::MemoryDomain;
use lapwing_kernels::graph::{Node, RowSet, ValueId, ValueSpec};
use lapwing_kernels::part::OperandOrder;
use lapwing_plan::planner::PlannerParts;
use lapwing_plan::rate::Rates;
use lapwing_plan::strategy::{ChunkShape, PromptRows, Strategy};
use lapwing_plan::time::Job;
use lapwing_plan::{DeviceId, Phase, PlanError, Route, Stage, StagePart, StageWork};

use super::{PartPlacement, Placement, StagePlacement, TransferPlacement};
use crate::devices::DeviceSpec;
use crate::engine::graphs::ReadGraphs;

/// An engine's data about its devices, which explains routes.
pub(crate) struct Explainer {
    /// The planner's parts, from which routes are made.
    pub(crate) parts: PlannerParts,
    /// The same of the draft model, if there is one.
    pub(crate) draft: Option<PlannerParts>,
    /// Routes of chunks whose graphs are not ready; `None` if they wait.
    pub(crate) meanwhile: Option<Arc<dyn Strategy>>,
    /// Graphs that were ready at the start.
    pub(crate) read_graphs: ReadGraphs,
    pub(crate) specs: Vec<DeviceSpec>,
    /// Descriptions of the kernels, by device.
    pub(crate) kernels: Vec<String>,
    /// Whether the times of all devices come from a profile.
    pub(crate) measured: bool,
    /// Whether they come from a cost model of the caller's own.
    pub(crate) own_cost: bool,
    /// Rates of the native devices that were timed at the start.
    pub(crate) timed: Vec<Option<Rates>>,
}

/// A stage of a route.
#[derive(Clone, Copy)]
struct At<'a> {
    route: &'a Route,
    at: usize,
    /// The stage before it that computes.
    before: Option<&'a Stage>,
}

impl Explainer {
    /// The placement of a chunk of that shape on a route.
    pub(crate) fn placement(&self, route: &Route, shape: ChunkShape) -> Placement {
        let compute = (0..route.stages.len()).filter(|at| route.stages[*at].computes());
        let mut before = None;
        let stages = compute.map(|at| {
            let before = before.replace(&route.stages[at]);
            self.stage(At { route, at, before }, shape)
        });
        Placement {
            strategy: self.parts.strategy.name().to_owned(),
            reason: route.reason.clone(),
            phase: shape.phase,
            rows: shape.rows,
            context: shape.context,
            predicted: route.predicted,
            times: self.own_cost.then(|| self.parts.cost.source()),
            stages: stages.collect(),
            transfers: self.transfers(route, shape),
        }
    }

    fn transfers(&self, route: &Route, shape: ChunkShape) -> Vec<TransferPlacement> {
        let mut transfers: Vec<TransferPlacement> = Vec::new();
        for stage in &route.stages {
            let (StageWork::Transfer { values, to }, Some(device)) =
                (&stage.work, stage.only_device())
            else {
                continue;
            };
            let bytes = |id: &ValueId| {
                let ValueSpec { width, rows } = self.parts.graph.value(*id);
                let rows = if rows == RowSet::Selected { shape.selected } else { shape.rows };
                (rows * width * size_of::<f32>()) as u64
            };
            let bytes = values.iter().map(bytes).sum::<u64>();
            let device = &self.parts.devices[device.0].name;
            let to_host = *to == MemoryDomain::Host;
            match transfers.iter_mut().find(|t| t.device == *device && t.to_host == to_host) {
                Some(known) => (known.count, known.bytes) = (known.count + 1, known.bytes + bytes),
                None => transfers.push(TransferPlacement {
                    device: device.clone(),
                    to_host,
                    count: 1,
                    bytes,
                }),
            }
        }
        transfers
    }

    /// The routes of a full chunk and of a decode step.
    pub(crate) fn usual_routes(&self, context: usize) -> Result<[Arc<Route>; 2], PlanError> {
        let shape = self.full_shape(context);
        let (input, strategy) = (self.parts.input(), &self.parts.strategy);
        let step = ChunkShape { phase: Phase::Decode, rows: 1, context: shape.rows, ..shape };
        let step = ChunkShape { prompt: 0, ..step.rounded() };
        Ok([strategy.route(&input, &shape)?, strategy.route(&input, &step)?])
    }

    /// The placement of the first full chunk of a prompt that fills the context.
    pub(crate) fn full_chunk(&self, context: usize) -> Result<Placement, PlanError> {
        let shape = self.full_shape(context);
        Ok(self.placement(&*self.parts.strategy.route(&self.parts.input(), &shape)?, shape))
    }

    fn full_shape(&self, context: usize) -> ChunkShape {
        let PlannerParts { strategy, chunk_rows, .. } = &self.parts;
        let input = self.parts.input();
        let most = context.min(*chunk_rows).max(1);
        let (phase, prompt) = (Phase::Prefill, context);
        let rows = strategy.chunk_rows(&input, PromptRows::new(prompt)).clamp(1, most);
        ChunkShape { phase, rows, selected: 1, context: 0, prompt }
    }

    /// Whether the speed of every device of the route is known.
    pub(crate) fn knows_times(&self, route: &Route) -> bool {
        let mut parts = route.compute_stages().flat_map(|stage| &stage.parts);
        parts.all(|part| self.knows(part.device))
    }

    fn knows(&self, device: DeviceId) -> bool {
        let timed = self.timed[device.0].is_some();
        self.measured || self.own_cost || timed || self.specs[device.0].is_throttled()
    }

    /// The source of predicted times, with the rates of timed devices.
    pub(crate) fn cost_source(&self) -> String {
        let mut source = self.parts.cost.source();
        if self.own_cost {
            return source;
        }
        for (spec, rates) in self.specs.iter().zip(&self.timed) {
            let Some(Rates { gflops, gbps, .. }) = rates else { continue };
            let name = &spec.name;
            source
                .push_str(&format!("; timed briefly: {name} {gflops:.0} GFLOP/s, {gbps:.1} GB/s"));
        }
        source
    }

    fn stage(&self, of: At<'_>, shape: ChunkShape) -> StagePlacement {
        let stage = &of.route.stages[of.at];
        let nodes = &self.parts.graph.nodes()[stage.nodes.clone()];
        let layers = nodes.iter().filter_map(|n| n.layer);
        let parts = stage.parts.iter().map(|part| self.part(of, part, shape));
        let parts: Vec<PartPlacement> = parts.collect();
        let devices: Vec<&str> = parts.iter().map(|part| part.device.as_str()).collect();
        StagePlacement {
            device: devices.join(" + "),
            ops: nodes.len(),
            layers: layers.clone().min().zip(layers.max()),
            kernels: parts.first().map_or_else(String::new, |part| part.kernels.clone()),
            formats: self.formats(nodes),
            parts,
        }
    }

    fn part(
        &self,
        of: At<'_>,
        StagePart { device, part }: &StagePart,
        shape: ChunkShape,
    ) -> PartPlacement {
        let (spec, stage) = (&self.specs[device.0], &of.route.stages[of.at]);
        let crossed = of.before.is_some_and(|stage| stage.only_device() != Some(*device));
        let batch = shape.batch();
        let job = Job {
            first: stage.nodes.start,
            end: stage.nodes.end,
            part,
            batch: &batch,
            crossed,
            border: of.route.border(of.at, *device),
            queued: false,
        };
        let share = part.features;
        PartPlacement {
            device: spec.name.clone(),
            rows: part.rows.clone(),
            features: (!share.is_whole()).then_some((share.from, share.to, share.of)),
            experts: part.experts.clone(),
            graphs: part.graphs.clone(),
            swapped: part.order == OperandOrder::Swapped && spec.is_throttled(),
            predicted: self.knows(*device).then(|| self.parts.cost.job_time(*device, &job)),
            kernels: self.kernels[device.0].clone(),
        }
    }

    fn formats(&self, nodes: &[Node]) -> Vec<(String, usize)> {
        let mut formats: Vec<(String, usize)> = Vec::new();
        for weight in nodes.iter().flat_map(|node| node.op.matrices()) {
            let name = self.parts.graph.weights()[weight.0].dtype.to_string();
            match formats.iter_mut().find(|(known, _)| *known == name) {
                Some((_, count)) => *count += 1,
                None => formats.push((name, 1)),
            }
        }
        formats
    }
}
