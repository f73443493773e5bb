//! The time model of the NPU.

use std::sync::Arc;
use std::time::Duration;

use lapwing_kernels::device::GraphKey;
use lapwing_kernels::op::Op;
use lapwing_kernels::part::{OperandOrder, Share};

use super::description::{Soc, micros};
use super::groups::WeightShape;
use super::times::{NodeTime, NonMatmulRates, Shared, nanos, node_load};
use crate::time::{Job, NodeLoad, TimeModel};

/// Rows of the prompts whose preparation time HeteroLLM (arXiv 2501.14794) publishes.
const PREPARED: [usize; 2] = [135, 1000];

/// The NPU.
#[derive(Debug)]
pub struct NpuTimes {
    shared: Arc<Shared>,
    /// F_n, in TFLOP/s.
    rate: f64,
    /// F_d, in TFLOP/s.
    wide_rate: f64,
    /// Maximum rate, in TFLOP/s.
    rate_max: f64,
    /// M0, in rows.
    wide_rows: f64,
    /// Minimum fraction of the rate.
    ratio_floor: f64,
    /// Rows are padded to a multiple of this.
    tile: usize,
    /// B_n, in GB/s.
    bandwidth: f64,
    others: NonMatmulRates,
    /// Launch of a graph.
    launch: Duration,
    /// Time to prepare four graphs for 135 and for 1000 rows, in ms.
    prepare: (f64, f64),
}

impl NpuTimes {
    pub(super) fn new(soc: &Soc, shared: Arc<Shared>) -> NpuTimes {
        NpuTimes {
            shared,
            rate: soc.at("npu.rate"),
            wide_rate: soc.at("npu.wide_rate"),
            rate_max: soc.at("npu.rate_max"),
            wide_rows: soc.at("npu.wide_rows"),
            ratio_floor: soc.at("npu.ratio_floor").max(f64::MIN_POSITIVE),
            tile: (soc.at("npu.tile") as usize).max(1),
            bandwidth: soc.at("npu.bandwidth"),
            others: NonMatmulRates {
                attention: soc.at("npu.rate"),
                bandwidth: soc.at("npu.element_bandwidth"),
                element_kernel: 0.0,
            },
            launch: soc.micros("npu.launch"),
            prepare: (soc.at("npu.prepare_short"), soc.at("npu.prepare_long")),
        }
    }

    /// Time of a matmul in a graph of M rows. The streamed operand has r rows for each of its columns: N/K of the whole weight in
    /// swapped order, which a row cut does not change, and M'/K in straight order.
    ///
    /// * M = 1: N·K·b/8 / (B_n · min(1, N/K)), bound by reading the weights in either order;
    /// * r ≥ 1: 2·N·K·M' / F_n, with M' = M padded to the array;
    /// * r < 1: 2·N·K·(M' + M0) / (F_d · max(r, floor)), but never faster than r = 1.
    fn matmul(&self, shape: WeightShape, rows: usize, order: OperandOrder) -> NodeTime {
        let weights = shape.outputs * shape.inputs;
        if weights == 0.0 || rows == 0 {
            return NodeTime::ZERO;
        }
        let tall = shape.all_outputs / shape.inputs;
        if rows == 1 {
            let nanos = shape.bytes / (self.bandwidth * tall.clamp(self.ratio_floor, 1.0));
            let load = NodeLoad { bytes: shape.bytes, memory_bound: true, joins: false };
            return NodeTime { nanos, load };
        }
        let padded = rows.next_multiple_of(self.tile) as f64;
        let time = |rows: f64, rate: f64| 2.0 * weights * rows * 1e-3 / rate.min(self.rate_max);
        let ratio = match order {
            OperandOrder::Swapped => tall,
            OperandOrder::Straight => padded / shape.inputs,
        };
        let full = time(padded, self.rate);
        let nanos = match ratio >= 1.0 {
            true => full,
            false => {
                let rate = self.wide_rate * ratio.max(self.ratio_floor);
                time(padded + self.wide_rows, rate).max(full)
            }
        };
        let load = NodeLoad { bytes: shape.bytes, memory_bound: false, joins: false };
        NodeTime { nanos, load }
    }

    fn node(&self, job: &Job<'_>, node: usize) -> NodeTime {
        let shared = &self.shared;
        match shared.graph.nodes()[node].op {
            Op::MatMul { .. } => {
                let shape = shared.weight_shape(shared.kernel(job, node), job.part);
                let own = [shared.rows(job, node)];
                let graphs = if job.part.graphs.is_empty() { &own[..] } else { &job.part.graphs };
                let mut all = NodeTime::ZERO;
                for rows in graphs {
                    let NodeTime { nanos, load } = self.matmul(shape, *rows, job.part.order);
                    let load = NodeLoad { bytes: all.load.bytes + load.bytes, ..load };
                    all = NodeTime { nanos: all.nanos + nanos, load };
                }
                all
            }
            _ => shared.other(job, node, self.others),
        }
    }
}

impl TimeModel for NpuTimes {
    fn overhead(&self, job: &Job<'_>) -> Duration {
        let graphs = u32::try_from(job.part.graphs.len()).unwrap_or(u32::MAX);
        self.shared.second(job) + self.launch.saturating_mul(graphs.max(1))
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

    /// A quarter of the time of the four graphs of a layer, for each matmul kernel of the key.
    /// HeteroLLM publishes 408.4 ms for a prompt of 135 rows and 2050 ms for 1000 rows, whose graphs
    /// have 160 and 1024 rows; other times lie on the line through these two.
    fn prepare_time(&self, key: &GraphKey) -> Duration {
        let (short, long) = self.prepare;
        let [from, to] = PREPARED.map(|rows| rows.next_multiple_of(Share::ALIGN) as f64);
        let layer = (short + (long - short) / (to - from) * (key.rows as f64 - from)).max(0.0);
        let (first, end) = (key.nodes.start, key.nodes.end);
        let starts = key.nodes.clone().filter(|node| {
            let is_matmul = matches!(self.shared.graph.nodes()[*node].op, Op::MatMul { .. });
            is_matmul && self.shared.groups.kernel(*node, first, end).start == *node
        });
        micros(1e3 * layer / 4.0) * u32::try_from(starts.count()).unwrap_or(u32::MAX)
    }
}
