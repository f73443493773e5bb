//! How long a system's processors take (device model, 3.1 to 3.6).

use std::sync::Arc;
use std::time::Duration;

use lapwing_kernels::device::GraphKey;
use lapwing_kernels::graph::Graph;
use lapwing_kernels::op::Op;
use lapwing_kernels::part::{OperandOrder, Part};

use super::groups::{Groups, Sides};
use super::rates::micros;
use super::{Soc, SyncMode, WeightBits, Workload};
use crate::plan::shape::rows_of;
use crate::plan::time::{Job, NodeLoad, TimeModel};

/// What all processors of a system share.
#[derive(Debug)]
pub(super) struct Shared {
    graph: Arc<Graph>,
    groups: Groups,
    /// Bits of each weight.
    bits: Vec<f64>,
    sync: SyncMode,
    slow: Duration,
    fast: Duration,
    /// Bytes per value of an element-wise op.
    element_bytes: f64,
}

impl Shared {
    pub(super) fn new(soc: &Soc, workload: &Workload, sync: SyncMode) -> Shared {
        let graph = Arc::clone(&workload.graph);
        let bits = graph.weights().iter().map(|weight| match workload.bits {
            WeightBits::Fixed(bits) => bits,
            WeightBits::Stored => {
                8.0 * weight.dtype.block_bytes() as f64 / weight.dtype.block_len() as f64
            }
        });
        Shared {
            groups: Groups::new(&graph),
            bits: bits.collect(),
            sync,
            slow: micros(soc.at("sync.slow") * soc.at("sync.queues")),
            fast: soc.micros("sync.fast"),
            element_bytes: soc.at("memory.element_bytes"),
            graph,
        }
    }

    /// Synchronisation before a job. With slow hand-overs a part of a cut waits for the one that
    /// precedes the other parts too: one thread finishes the queue and then submits them all.
    fn hand_over(&self, job: &Job<'_>) -> Option<Duration> {
        let is_cut = !job.part.is_whole();
        match self.sync {
            SyncMode::Fast => job.crossed.then_some(self.fast),
            SyncMode::Slow => (job.crossed || is_cut).then_some(self.slow),
        }
    }

    /// The kernel that a node belongs to, within a job.
    fn kernel(&self, job: &Job<'_>, node: usize) -> std::ops::Range<usize> {
        self.groups.kernel(node, (job.first, job.end))
    }

    fn sides(&self, nodes: std::ops::Range<usize>, part: &Part) -> Sides {
        self.groups.sides((&self.graph, &self.bits), nodes, part)
    }

    /// A node's share of its kernel's time: by outputs, so that the shares of all add up.
    fn share(&self, job: &Job<'_>, node: usize, kernel_nanos: f64) -> Duration {
        let nodes = self.kernel(job, node);
        let all = self.sides(nodes.clone(), job.part).outputs;
        if all == 0.0 {
            return Duration::ZERO;
        }
        let upto = |end: usize| {
            let part = self.sides(nodes.start..end, job.part).outputs / all;
            (kernel_nanos * part).round() as u64
        };
        Duration::from_nanos(upto(node + 1) - upto(node))
    }

    /// Rows of what a node computes.
    fn rows(&self, job: &Job<'_>, node: usize) -> usize {
        rows_of(&self.graph, node, job.part, job.batch)
    }

    /// Bytes that an element-wise op moves for so many rows.
    fn element_bytes(&self, job: &Job<'_>, node: usize, rows: usize) -> f64 {
        let node = &self.graph.nodes()[node];
        let width = |value| self.graph.value(value).width as f64;
        let out = job.part.features.of_width(self.graph.value(node.output).width).len() as f64;
        let read = match &node.op {
            // Both inputs are as wide as the output.
            Op::Gated(_) | Op::Add => 2.0 * out,
            Op::Embed { .. } | Op::SelectRows | Op::SoftCap { .. } => out,
            _ => node.inputs.iter().map(|value| width(*value)).sum(),
        };
        self.element_bytes * rows as f64 * (read + out)
    }

    /// Operations of a chunk's attention, each row against all keys up to its chunk's end:
    /// 4·s·c·q (S0-7); and the bytes of the keys and values that it reads, in fp16.
    fn attention(&self, job: &Job<'_>, node: usize) -> (f64, f64) {
        let inputs = &self.graph.nodes()[node].inputs;
        let width = |at: usize| inputs.get(at).map_or(0.0, |v| self.graph.value(*v).width as f64);
        let spans = job.batch.spans.iter();
        let (mut pairs, mut keys) = (0.0, 0.0);
        for span in spans {
            let end = (span.start + span.rows.len()) as f64;
            pairs += span.rows.len() as f64 * end;
            keys += end;
        }
        (4.0 * pairs * width(0), 2.0 * keys * (width(1) + width(2)))
    }

    /// Time of the ops that are no matrix product on a processor of these rates, and what they
    /// move.
    fn other(&self, job: &Job<'_>, node: usize, rates: Rates) -> (f64, NodeLoad) {
        if let Op::Attention(_) = self.graph.nodes()[node].op {
            let (flops, bytes) = self.attention(job, node);
            let (compute, memory) = (flops / rates.attention * 1e-3, bytes / rates.bandwidth);
            let nanos = compute.max(memory).max(rates.element_kernel);
            return (nanos, NodeLoad { bytes, memory_bound: memory >= compute, joins: false });
        }
        let rows = match &job.part.graphs[..] {
            [] => self.rows(job, node),
            graphs => graphs.iter().sum(),
        };
        let bytes = self.element_bytes(job, node, rows);
        let memory = bytes / rates.bandwidth;
        let memory_bound = memory >= rates.element_kernel;
        (memory.max(rates.element_kernel), NodeLoad { bytes, memory_bound, joins: false })
    }
}

/// Rates of what is no matrix product.
#[derive(Clone, Copy, Debug)]
struct Rates {
    /// TFLOP/s.
    attention: f64,
    /// GB/s.
    bandwidth: f64,
    /// Nanoseconds.
    element_kernel: f64,
}

/// A time and what it moves.
type Loaded = (f64, NodeLoad);

fn whole(nanos: f64) -> Duration {
    Duration::from_nanos(nanos.round() as u64)
}

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
        let few = memory + if rows > 1 { flops / self.small_rate } else { 0.0 };
        let load =
            NodeLoad { bytes: sides.bytes, memory_bound: rows == 1 && few <= many, joins: false };
        (many.min(few), load)
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

/// What a node moves of its kernel.
fn node_load(shared: &Shared, job: &Job<'_>, node: usize, load: NodeLoad) -> NodeLoad {
    let kernel = shared.kernel(job, node);
    let all = shared.sides(kernel.clone(), job.part).outputs;
    let own = shared.sides(node..node + 1, job.part).outputs;
    let part = if all > 0.0 { own / all } else { 1.0 };
    NodeLoad { bytes: load.bytes * part, joins: node > kernel.start, ..load }
}

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

    /// A quarter of what the four graphs of a layer take: 408.4 + 1641.6·(S − 135)/865 ms (S2-49),
    /// for each product of the key.
    fn prepare_time(&self, key: &GraphKey) -> Duration {
        let (short, long) = self.prepare;
        let slope = (long - short) / (1000.0 - 135.0);
        let layer = (short + slope * (key.rows as f64 - 135.0)).max(0.0);
        let job = (key.nodes.start, key.nodes.end);
        let starts = key.nodes.clone().filter(|node| {
            let is_product = matches!(self.shared.graph.nodes()[*node].op, Op::MatMul { .. });
            is_product && self.shared.groups.kernel(*node, job).start == *node
        });
        micros(1e3 * layer / 4.0) * u32::try_from(starts.count()).unwrap_or(u32::MAX)
    }
}

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
