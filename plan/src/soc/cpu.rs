//! The time model of the CPU.

use std::sync::Arc;
use std::time::Duration;

use lapwing_kernels::op::Op;

use super::description::Soc;
use super::times::{NodeTime, NonMatmulRates, Shared, nanos};
use crate::time::{Job, NodeLoad, TimeModel};

/// The CPU, as a roofline.
#[derive(Debug)]
pub struct CpuTimes {
    shared: Arc<Shared>,
    /// Matmul rate, in TFLOP/s.
    rate: f64,
    others: NonMatmulRates,
}

impl CpuTimes {
    pub(super) fn new(soc: &Soc, shared: Arc<Shared>) -> CpuTimes {
        let (rate, bandwidth) = (soc.at("cpu.rate"), soc.at("cpu.bandwidth"));
        let others = NonMatmulRates { attention: rate, bandwidth, element_kernel: 0.0 };
        CpuTimes { shared, rate, others }
    }

    fn node(&self, job: &Job<'_>, node: usize) -> NodeTime {
        let shared = &self.shared;
        let Op::MatMul { .. } = shared.graph.nodes()[node].op else {
            return shared.other(job, node, self.others);
        };
        let shape = shared.weight_shape(node..node + 1, job.part);
        let rows = shared.rows(job, node);
        if rows == 0 {
            return NodeTime::ZERO;
        }
        let compute = 2.0 * shape.outputs * shape.inputs * rows as f64 * 1e-3 / self.rate;
        let memory = shape.bytes / self.others.bandwidth;
        let memory_bound = memory >= compute;
        let load = NodeLoad { bytes: shape.bytes, memory_bound, joins: false };
        NodeTime { nanos: compute.max(memory), load }
    }
}

impl TimeModel for CpuTimes {
    fn overhead(&self, job: &Job<'_>) -> Duration {
        self.shared.second(job)
    }

    fn node_time(&self, job: &Job<'_>, node: usize) -> Duration {
        nanos(self.node(job, node).nanos)
    }

    fn load(&self, job: &Job<'_>, node: usize) -> NodeLoad {
        self.node(job, node).load
    }
}
