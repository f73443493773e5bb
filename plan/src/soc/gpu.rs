//! The time model of the GPU.

use std::sync::Arc;
use std::time::Duration;

use lapwing_kernels::op::Op;

use super::description::Soc;
use super::groups::WeightShape;
use super::times::{NodeTime, NonMatmulRates, Products, Shared, Wait, nanos, node_load};
use crate::time::{Job, NodeLoad, TimeModel};

/// The GPU.
#[derive(Debug)]
pub struct GpuTimes {
    shared: Arc<Shared>,
    /// F_g: GEMM rate, in TFLOP/s.
    rate: f64,
    /// F_s: batched GEMV rate, in TFLOP/s.
    small_rate: f64,
    /// d, in ns per weight.
    weight_time: f64,
    /// c0, in ns.
    kernel: f64,
    others: NonMatmulRates,
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
            others: NonMatmulRates {
                attention: soc.at("gpu.attention_rate"),
                bandwidth: soc.at("gpu.bandwidth"),
                element_kernel: soc.at("gpu.element_kernel") * 1e3,
            },
            submit_empty: soc.micros("gpu.submit_empty"),
            submit_queued: soc.micros("gpu.submit_queued"),
        }
    }

    /// Time of a matmul of M rows with N outputs, K inputs and b bits per weight, by the faster kernel:
    /// t_g = min(c0 + d·N·K + 2·N·K·M / F_g, N·K·b/8 / B_g + [M > 1] 2·N·K·M / F_s).
    fn matmul(&self, shape: WeightShape, rows: usize) -> NodeTime {
        let weights = shape.outputs * shape.inputs;
        let flops = 2.0 * weights * rows as f64;
        self.products(Products {
            kernels: 1.0,
            weights,
            bytes: shape.bytes,
            flops,
            rows: rows as f64,
        })
    }

    /// As [`matmul`](GpuTimes::matmul), for products of several kernels: each pays c0. N·K are the weights that are read, and M the rows of
    /// each of them.
    fn products(&self, all: Products) -> NodeTime {
        if all.weights == 0.0 || all.flops == 0.0 {
            return NodeTime::ZERO;
        }
        let flops = all.flops * 1e-3;
        let gemm = all.kernels * self.kernel + self.weight_time * all.weights + flops / self.rate;
        let memory = all.bytes / self.others.bandwidth;
        let compute = if all.rows > 1.0 { flops / self.small_rate } else { 0.0 };
        let gemv = memory + compute;
        // A kernel has one flag, so the larger of its two terms decides.
        let memory_bound = gemv <= gemm && memory >= compute;
        let load = NodeLoad { bytes: all.bytes, memory_bound, joins: false };
        NodeTime { nanos: gemm.min(gemv), load }
    }

    fn node(&self, job: &Job<'_>, node: usize) -> NodeTime {
        let shared = &self.shared;
        match shared.graph.nodes()[node].op {
            Op::MatMul { .. } => {
                let shape = shared.weight_shape(shared.kernel(job, node), job.part);
                self.matmul(shape, shared.rows(job, node))
            }
            _ if shared.rows(job, node) == 0 => NodeTime::ZERO,
            Op::Experts(_) => self.products(shared.experts(job, node)),
            _ => shared.other(job, node, self.others),
        }
    }
}

impl TimeModel for GpuTimes {
    /// Synchronisation includes the submission. A submission to a busy queue is hidden, and so is one
    /// that the host queues in advance, since it knows the route. After a cut, the GPU waited for the other part beside its own:
    /// the order of its queue is all that is left. After copies, its queue is empty.
    fn overhead(&self, job: &Job<'_>) -> Duration {
        match self.shared.sync(job) {
            Wait::Polled(_) if job.border.shared => Duration::ZERO,
            Wait::Polled(fast) => fast,
            Wait::Copied(copies) => copies + self.submit_empty + self.submit_queued,
            Wait::None if job.first == 0 && job.end > 0 && !job.queued => {
                self.submit_empty + self.submit_queued
            }
            Wait::None => Duration::ZERO,
        }
    }

    fn node_time(&self, job: &Job<'_>, node: usize) -> Duration {
        let time = self.node(job, node).nanos;
        match self.shared.graph.nodes()[node].op {
            Op::MatMul { .. } => self.shared.share(job, node, time),
            _ => nanos(time),
        }
    }

    fn load(&self, job: &Job<'_>, node: usize) -> NodeLoad {
        node_load(&self.shared, job, node, self.node(job, node).load)
    }
}
