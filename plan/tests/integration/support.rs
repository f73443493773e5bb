//! Graphs of real architectures, devices and their times, shared with the tests of the crate actors.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use lapwing_kernels::device::{DeviceInfo, DeviceKind};
use lapwing_kernels::graph::Graph;
use lapwing_kernels::model::Model;
use lapwing_kernels::weights::WeightFile;
use lapwing_plan::Phase;
use lapwing_plan::strategy::ChunkShape;
use lapwing_plan::time::{Job, TimeModel};

/// Row counts of the NPU's prepared graphs.
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

/// A fixed time per submission, and a fixed rate of floating-point operations.
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

/// A chunk that is a whole prompt; the logits of its last row are wanted.
pub(crate) fn prefill(rows: usize) -> ChunkShape {
    ChunkShape { phase: Phase::Prefill, rows, selected: 1, context: 0, prompt: rows }
}
