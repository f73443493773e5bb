//! What all processors of a system share: sizes of kernels, hand-overs, and ops that are no matrix
//! product (device model, 3.4 and 3.6).

use std::sync::Arc;
use std::time::Duration;

use lapwing_kernels::graph::Graph;
use lapwing_kernels::op::Op;
use lapwing_kernels::part::Part;

use super::groups::{Groups, Sides};
use super::rates::micros;
use super::{Soc, SyncMode, WeightBits, Workload};
use crate::shape::rows_of;
use crate::time::{Job, NodeLoad};

/// What all processors of a system share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) graph: Arc<Graph>,
    pub(super) groups: Groups,
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
    pub(super) fn hand_over(&self, job: &Job<'_>) -> Option<Duration> {
        let is_cut = !job.part.is_whole();
        match self.sync {
            SyncMode::Fast => job.crossed.then_some(self.fast),
            SyncMode::Slow => (job.crossed || is_cut).then_some(self.slow),
        }
    }

    /// The kernel that a node belongs to, within a job.
    pub(super) fn kernel(&self, job: &Job<'_>, node: usize) -> std::ops::Range<usize> {
        self.groups.kernel(node, (job.first, job.end))
    }

    pub(super) fn sides(&self, nodes: std::ops::Range<usize>, part: &Part) -> Sides {
        self.groups.sides((&self.graph, &self.bits), nodes, part)
    }

    /// A node's share of its kernel's time: by outputs, so that the shares of all add up.
    pub(super) fn share(&self, job: &Job<'_>, node: usize, kernel_nanos: f64) -> Duration {
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
    pub(super) fn rows(&self, job: &Job<'_>, node: usize) -> usize {
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
    /// 4·s·c·q (S0-7); and the bytes of the keys and values that it reads, in fp16. With a sliding
    /// window, the keys of s rows together are at most those of the window and s.
    fn attention(&self, job: &Job<'_>, node: usize, window: Option<usize>) -> (f64, f64) {
        let inputs = &self.graph.nodes()[node].inputs;
        let width = |at: usize| inputs.get(at).map_or(0.0, |v| self.graph.value(*v).width as f64);
        let spans = job.batch.spans.iter();
        let (mut pairs, mut keys) = (0.0, 0.0);
        for span in spans {
            let (rows, end) = (span.rows.len(), span.start + span.rows.len());
            let seen = window.map_or(end, |window| end.min(window.saturating_add(rows))) as f64;
            pairs += rows as f64 * seen;
            keys += seen;
        }
        (4.0 * pairs * width(0), 2.0 * keys * (width(1) + width(2)))
    }

    /// Time of the ops that are no matrix product on a processor of these rates, and what they
    /// move.
    pub(super) fn other(&self, job: &Job<'_>, node: usize, rates: Rates) -> (f64, NodeLoad) {
        if let Op::Attention(op) = &self.graph.nodes()[node].op {
            let (flops, bytes) = self.attention(job, node, op.window);
            let (compute, memory) = (flops / rates.attention * 1e-3, bytes / rates.bandwidth);
            let others = compute.max(rates.element_kernel);
            let load = NodeLoad { bytes, memory_bound: memory >= others, joins: false };
            return (memory.max(others), load);
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
pub(super) struct Rates {
    /// TFLOP/s.
    pub(super) attention: f64,
    /// GB/s.
    pub(super) bandwidth: f64,
    /// Nanoseconds.
    pub(super) element_kernel: f64,
}

/// A time and what it moves.
pub(super) type Loaded = (f64, NodeLoad);

pub(super) fn whole(nanos: f64) -> Duration {
    Duration::from_nanos(nanos.round() as u64)
}

/// What a node moves of its kernel.
pub(super) fn node_load(shared: &Shared, job: &Job<'_>, node: usize, load: NodeLoad) -> NodeLoad {
    let kernel = shared.kernel(job, node);
    let all = shared.sides(kernel.clone(), job.part).outputs;
    let own = shared.sides(node..node + 1, job.part).outputs;
    let part = if all > 0.0 { own / all } else { 1.0 };
    NodeLoad { bytes: load.bytes * part, joins: node > kernel.start, ..load }
}
