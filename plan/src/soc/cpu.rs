//! How long a CPU takes.

use std::sync::Arc;
use std::time::Duration;

use lapwing_kernels::op::Op;

use super::Soc;
use super::times::{Loaded, Rates, Shared, whole};
use crate::time::{Job, NodeLoad, TimeModel};

/// The CPU: a roofline.
#[derive(Debug)]
pub struct CpuTimes {
    shared: Arc<Shared>,
    /// TFLOP/s.
    rate: f64,
    others: Rates,
}

impl CpuTimes {
    pub(super) fn new(soc: &Soc, shared: Arc<Shared>) -> CpuTimes {
        let (rate, bandwidth) = (soc.at("cpu.rate"), soc.at("cpu.bandwidth"));
        let others = Rates { attention: rate, bandwidth, element_kernel: 0.0 };
        CpuTimes { shared, rate, others }
    }

    fn loaded(&self, job: &Job<'_>, node: usize) -> Loaded {
        let shared = &self.shared;
        let Op::MatMul { .. } = shared.graph.nodes()[node].op else {
            return shared.other(job, node, self.others);
        };
        let sides = shared.sides(node..node + 1, job.part);
        let rows = shared.rows(job, node);
        if rows == 0 {
            return (0.0, NodeLoad::NONE);
        }
        let compute = 2.0 * sides.outputs * sides.inputs * rows as f64 * 1e-3 / self.rate;
        let memory = sides.bytes / self.others.bandwidth;
        let memory_bound = memory >= compute;
        (compute.max(memory), NodeLoad { bytes: sides.bytes, memory_bound, joins: false })
    }
}

impl TimeModel for CpuTimes {
    fn overhead(&self, job: &Job<'_>) -> Duration {
        self.shared.hand_over(job).unwrap_or(Duration::ZERO)
    }

    fn node_time(&self, job: &Job<'_>, node: usize) -> Duration {
        whole(self.loaded(job, node).0)
    }

    fn load(&self, job: &Job<'_>, node: usize) -> NodeLoad {
        self.loaded(job, node).1
    }
}
