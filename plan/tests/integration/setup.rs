//! The input of a strategy, and the shapes of chunks.

use std::sync::Arc;
use std::time::Duration;

use lapwing_kernels::device::{DeviceInfo, DeviceKind};
use lapwing_kernels::graph::Graph;
use lapwing_plan::cost::{CostModel, Modelled};
use lapwing_plan::strategy::{ChunkShape, PlanInput, Strategy};
use lapwing_plan::time::TimeModel;
use lapwing_plan::{Phase, PlanError, Route, Stage, StagePart};

use crate::support::{Rate, devices, graph};

/// The input of a strategy: a graph, devices and their predicted times.
pub(crate) struct Setup {
    pub(crate) graph: Arc<Graph>,
    pub(crate) devices: Vec<DeviceInfo>,
    pub(crate) cost: Modelled,
    pub(crate) chunk_rows: usize,
}

impl Setup {
    /// A model on devices of which the NPU is the fastest and the CPU the slowest.
    pub(crate) fn new(model: &str, names: &str) -> Setup {
        let (graph, devices) = (graph(model), devices(names));
        let model = |info: &DeviceInfo| -> Arc<dyn TimeModel> {
            let (stage_us, flops_per_us) = match info.kind {
                DeviceKind::Cpu => (1, 100),
                DeviceKind::Gpu | DeviceKind::Own(_) => (20, 1000),
                DeviceKind::Npu => (10, 10_000),
            };
            let per_stage = Duration::from_micros(stage_us);
            Arc::new(Rate { graph: Arc::clone(&graph), per_stage, flops_per_us })
        };
        let models = devices.iter().map(model).collect();
        let cost = Modelled { devices: models, sync: Duration::from_micros(15), copy_rate: 1e9 };
        Setup { graph, devices, cost, chunk_rows: 4096 }
    }

    pub(crate) fn input(&self) -> PlanInput<'_> {
        let Setup { graph, devices, cost, chunk_rows } = self;
        PlanInput {
            model: Default::default(),
            graph,
            devices,
            cost: cost as &dyn CostModel,
            chunk_rows: *chunk_rows,
        }
    }

    pub(crate) fn route(
        &self,
        strategy: &dyn Strategy,
        shape: ChunkShape,
    ) -> Result<Arc<Route>, PlanError> {
        strategy.route(&self.input(), &shape)
    }

    /// Stages that are divided between devices.
    pub(crate) fn cuts(route: &Route) -> Vec<&Stage> {
        route.compute_stages().filter(|stage| stage.parts.len() > 1).collect()
    }

    /// The name of a stage's device; `a|b` for a divided stage.
    pub(crate) fn names(&self, stage: &Stage) -> String {
        let name = |part: &StagePart| self.devices[part.device.0].name.clone();
        stage.parts.iter().map(name).collect::<Vec<_>>().join("|")
    }
}

/// A decode step: one row of each of so many sequences.
pub(crate) fn decode(rows: usize) -> ChunkShape {
    ChunkShape { phase: Phase::Decode, rows, selected: rows, context: 100, prompt: 0 }
}
