//! How long an NPU takes.

use std::sync::Arc;
use std::time::Duration;

use lapwing_kernels::device::GraphKey;
use lapwing_kernels::op::Op;
use lapwing_kernels::part::{OperandOrder, Share};

use super::Soc;
use super::groups::Sides;
use super::rates::micros;
use super::times::{Loaded, Rates, Shared, node_load, whole};
use crate::time::{Job, NodeLoad, TimeModel};

/// Rows of the prompts of which times to prepare are published (S2-49).
const PREPARED: [usize; 2] = [135, 1000];

/// The NPU (device model, 3.2 and 3.5).
#[derive(Debug)]
pub struct NpuTimes {
    shared: Arc<Shared>,
    /// TFLOP/s.
    rate: f64,
    wide_rate: f64,
    rate_max: f64,
    wide_rows: f64,
    ratio_floor: f64,
    tile: usize,
    /// GB/s.
    bandwidth: f64,
    others: Rates,
    submit: Duration,
    /// Milliseconds.
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
            others: Rates {
                attention: soc.at("npu.rate"),
                bandwidth: soc.at("npu.element_bandwidth"),
                element_kernel: 0.0,
            },
            submit: soc.micros("npu.submit"),
            prepare: (soc.at("npu.prepare_short"), soc.at("npu.prepare_long")),
        }
    }

    /// A product in a graph of so many rows. r = N/K of the whole weight after the order swap,
    /// else M/K: a row cut does not change the kind of graph.
    ///
    /// * one row: N·K·b/8 / (B_n · min(1, r)), as all of the weights are read for it;
    /// * r ≥ 1: 2·N·K·M' / F_n, with M' = M padded to the array;
    /// * r < 1: 2·N·K·(M' + M0) / (F_d · max(r, floor)), but never faster than with r = 1.
    fn product(&self, sides: Sides, rows: usize, order: OperandOrder) -> Loaded {
        let weights = sides.outputs * sides.inputs;
        if weights == 0.0 || rows == 0 {
            return (0.0, NodeLoad::NONE);
        }
        let tall = sides.all_outputs / sides.inputs;
        if rows == 1 {
            let nanos = sides.bytes / (self.bandwidth * tall.clamp(self.ratio_floor, 1.0));
            return (nanos, NodeLoad { bytes: sides.bytes, memory_bound: true, joins: false });
        }
        let padded = rows.next_multiple_of(self.tile) as f64;
        let nanos = |rows: f64, rate: f64| 2.0 * weights * rows * 1e-3 / rate.min(self.rate_max);
        let full = nanos(padded, self.rate);
        let time = match order {
            OperandOrder::Swapped if tall >= 1.0 => full,
            OperandOrder::Swapped => {
                let rate = self.wide_rate * tall.max(self.ratio_floor);
                nanos(padded + self.wide_rows, rate).max(full)
            }
            OperandOrder::Straight => {
                nanos(padded, self.rate * (padded / sides.inputs).clamp(self.ratio_floor, 1.0))
            }
        };
        (time, NodeLoad { bytes: sides.bytes, memory_bound: false, joins: false })
    }

    fn loaded(&self, job: &Job<'_>, node: usize) -> Loaded {
        let shared = &self.shared;
        match shared.graph.nodes()[node].op {
            Op::MatMul { .. } => {
                let sides = shared.sides(shared.kernel(job, node), job.part);
                let own = [shared.rows(job, node)];
                let graphs = if job.part.graphs.is_empty() { &own[..] } else { &job.part.graphs };
                let mut all = (0.0, NodeLoad::NONE);
                for rows in graphs {
                    let (nanos, load) = self.product(sides, *rows, job.part.order);
                    let bytes = all.1.bytes + load.bytes;
                    all = (all.0 + nanos, NodeLoad { bytes, ..load });
                }
                all
            }
            _ => shared.other(job, node, self.others),
        }
    }
}

impl TimeModel for NpuTimes {
    fn overhead(&self, job: &Job<'_>) -> Duration {
        self.shared.hand_over(job).unwrap_or(Duration::ZERO) + self.submit
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

    /// A quarter of what the four graphs of a layer take, for each product of the key. 408.4 ms are
    /// published for a prompt of 135 rows and 2050 ms for one of 1000 (S2-49), whose graphs have
    /// ⌈135⌉ = 160 and ⌈1000⌉ = 1024 rows; between and beyond, a straight line.
    fn prepare_time(&self, key: &GraphKey) -> Duration {
        let (short, long) = self.prepare;
        let [from, to] = PREPARED.map(|rows| rows.next_multiple_of(Share::ALIGN) as f64);
        let layer = (short + (long - short) / (to - from) * (key.rows as f64 - from)).max(0.0);
        let job = (key.nodes.start, key.nodes.end);
        let starts = key.nodes.clone().filter(|node| {
            let is_product = matches!(self.shared.graph.nodes()[*node].op, Op::MatMul { .. });
            is_product && self.shared.groups.kernel(*node, job).start == *node
        });
        micros(1e3 * layer / 4.0) * u32::try_from(starts.count()).unwrap_or(u32::MAX)
    }
}
