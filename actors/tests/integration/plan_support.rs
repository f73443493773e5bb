//! What plans are made for in tests: graphs of real architectures, devices, and their times.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use lapwing_kernels::device::{DeviceInfo, DeviceKind};
use lapwing_kernels::graph::Graph;
use lapwing_kernels::model::Model;
use lapwing_kernels::weights::WeightFile;
use lapwing_plan::Phase;
use lapwing_plan::PlanError;
use lapwing_plan::cost::{CostModel, Modelled};
use lapwing_plan::strategy::{ChunkShape, PlanInput, Strategy};
use lapwing_plan::time::{Job, TimeModel};
use lapwing_plan::{Route, Stage};

/// Row counts of an NPU's graphs.
pub(crate) const SIZES: [usize; 6] = [32, 64, 128, 256, 512, 1024];

/// The graph of a tiny model, built from its weight file as a real one is.
pub(crate) fn graph(name: &str) -> Arc<Graph> {
    let tiny = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/reference/tiny");
    let file = WeightFile::open(&tiny.join(format!("{name}.gguf"))).expect("a tiny model");
    Arc::new(Model::from_weights(&file).expect("a model").graph)
}

/// Devices named after their kinds, as in `cpu gpu npu`.
pub(crate) fn devices(names: &str) -> Vec<DeviceInfo> {
    let device = |name: &str| {
        let kind = match name {
            "cpu" => DeviceKind::Cpu,
            "gpu" => DeviceKind::Gpu,
            _ => DeviceKind::Npu,
        };
        let sizes = if kind == DeviceKind::Npu { SIZES.to_vec() } else { Vec::new() };
        DeviceInfo::new(name, kind).with_graphs(sizes, None)
    };
    names.split(' ').map(device).collect()
}

/// A time for each submission, and for each operation of a part.
pub(crate) struct Rate {
    pub(crate) graph: Arc<Graph>,
    pub(crate) per_stage: Duration,
    pub(crate) flops_per_us: u64,
}

impl TimeModel for Rate {
    fn overhead(&self, _job: &Job<'_>) -> Duration {
        self.per_stage
    }

    fn node_time(&self, job: &Job<'_>, node: usize) -> Duration {
        let cost = self.graph.part_cost(node, job.part, job.batch);
        Duration::from_nanos(cost.flops * 1000 / self.flops_per_us)
    }
}

/// Everything that a strategy looks at.
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
                DeviceKind::Gpu => (20, 1000),
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

    /// Stages that several devices divide.
    pub(crate) fn cuts(route: &Route) -> Vec<&Stage> {
        route.compute_stages().filter(|stage| stage.parts.len() > 1).collect()
    }

    /// Device names, in the order of a route's one-device stages; `a|b` for divided ones.
    pub(crate) fn names(&self, stage: &Stage) -> String {
        let name = |part: &lapwing_plan::StagePart| self.devices[part.device.0].name.clone();
        stage.parts.iter().map(name).collect::<Vec<_>>().join("|")
    }
}

/// Rows of a prompt; the last one's logits are wanted.
pub(crate) fn prefill(rows: usize) -> ChunkShape {
    ChunkShape { phase: Phase::Prefill, rows, selected: 1, context: 0, prompt: rows }
}

/// One row of each sequence.
pub(crate) fn decode(rows: usize) -> ChunkShape {
    ChunkShape { phase: Phase::Decode, rows, selected: rows, context: 100, prompt: 0 }
}
