//! How long a GPU takes.

use std::sync::Arc;
use std::time::Duration;

use lapwing_kernels::op::Op;

use super::Soc;
use super::groups::Sides;
use super::times::{Loaded, Rates, Shared, node_load, whole};
use crate::time::{Job, NodeLoad, TimeModel};

/// The GPU (device model, 3.1).
#[derive(Debug)]
pub struct GpuTimes {
    shared: Arc<Shared>,
    /// TFLOP/s, and those of few rows.
    rate: f64,
    small_rate: f64,
    /// Nanoseconds per weight.
    weight_time: f64,
    /// Nanoseconds.
    kernel: f64,
    others: Rates,
    submit_empty: Duration,
    submit_queued: Duration,
}

impl GpuTimes {
    pub(super) fn new(soc: &Soc, shared: Arc<Shared>) -> GpuTimes {
        GpuTimes {
            shared,
            rate: soc.at("gpu.rate"),
            small_rate: soc.at("gpu.small_rate"),
            weight_time: soc.at("gpu.weight_time"),
            kernel: soc.at("gpu.kernel") * 1e3,
            others: Rates {
                attention: soc.at("gpu.attention_rate"),
                bandwidth: soc.at("gpu.bandwidth"),
                element_kernel: soc.at("gpu.element_kernel") * 1e3,
            },
            submit_empty: soc.micros("gpu.submit_empty"),
            submit_queued: soc.micros("gpu.submit_queued"),
        }
    }

    /// t_g = min(c0 + d·N·K + 2·N·K·M / F_g, N·K·b/8 / B_g + [M > 1] 2·N·K·M / F_s).
    fn product(&self, sides: Sides, rows: usize) -> Loaded {
        let weights = sides.outputs * sides.inputs;
        if weights == 0.0 || rows == 0 {
            return (0.0, NodeLoad::NONE);
        }
        let flops = 2.0 * weights * rows as f64 * 1e-3;
        let many = self.kernel + self.weight_time * weights + flops / self.rate;
        let memory = sides.bytes / self.others.bandwidth;
        let compute = if rows > 1 { flops / self.small_rate } else { 0.0 };
        let few = memory + compute;
        // The one flag of a kernel is that of its larger half.
        let memory_bound = few <= many && memory >= compute;
        (many.min(few), NodeLoad { bytes: sides.bytes, memory_bound, joins: false })
    }

    fn loaded(&self, job: &Job<'_>, node: usize) -> Loaded {
        let shared = &self.shared;
        match shared.graph.nodes()[node].op {
            Op::MatMul { .. } => {
                let sides = shared.sides(shared.kernel(job, node), job.part);
                self.product(sides, shared.rows(job, node))
            }
            _ if shared.rows(job, node) == 0 => (0.0, NodeLoad::NONE),
            _ => shared.other(job, node, self.others),
        }
    }
}

impl TimeModel for GpuTimes {
    /// A hand-over contains the submission; one to a queue that is not empty, or that the host
    /// fills in advance because it knows the route, is hidden (S2-36).
    fn overhead(&self, job: &Job<'_>) -> Duration {
        match self.shared.hand_over(job) {
            Some(hand_over) => hand_over,
            None if job.first == 0 && job.end > 0 && !job.queued => {
                self.submit_empty + self.submit_queued
            }
            None => Duration::ZERO,
        }
    }

    fn node_time(&self, job: &Job<'_>, node: usize) -> Duration {
        let (nanos, _) = self.loaded(job, node);
        match self.shared.graph.nodes()[node].op {
            Op::MatMul { .. } => self.shared.share(job, node, nanos),
            _ => whole(nanos),
        }
    }

    fn load(&self, job: &Job<'_>, node: usize) -> NodeLoad {
        node_load(&self.shared, job, node, self.loaded(job, node).1)
    }
}
