//! Times common to all processors of a system: synchronisation, and ops other than matmuls.

use std::sync::Arc;
use std::time::Duration;

use lapwing_kernels::graph::{Graph, WeightId};
use lapwing_kernels::mask::Mask;
use lapwing_kernels::op::Op;
use lapwing_kernels::ops::Reads;
use lapwing_kernels::part::Part;

use super::description::Soc;
use super::groups::{Groups, WeightShape};
use super::workload::{SyncMode, WeightBits, Workload};
use crate::shape::rows_of;
use crate::time::{Job, NodeLoad};

/// The workload and parameters common to all processors.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) graph: Arc<Graph>,
    pub(super) groups: Groups,
    /// Bits per weight of each weight matrix.
    bits: Vec<f64>,
    sync: SyncMode,
    /// A copy call of slow synchronisation.
    copy: Duration,
    /// What the host takes to submit a part to the GPU.
    submit: Duration,
    fast: Duration,
    /// Bytes moved per value of an element-wise op.
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
            copy: soc.micros("sync.copy"),
            submit: soc.micros("gpu.submit_queued"),
            fast: soc.micros("sync.fast"),
            element_bytes: soc.at("memory.element_bytes"),
            graph,
        }
    }

    /// Synchronisation before a job.
    ///
    /// Fast: the host polls a flag of the producer and submits. The second processor of a cut does so once more at its end, for the
    /// way back, which passes beside the first processor's own part.
    ///
    /// Slow: one host thread copies each buffer that crosses, one after another, and then submits the parts of the stage: that of the GPU
    /// first, whose submission returns at once.
    pub(super) fn sync(&self, job: &Job<'_>) -> Wait {
        match self.sync {
            SyncMode::Fast if !job.crossed => Wait::None,
            SyncMode::Fast => Wait::Polled(self.fast),
            SyncMode::Slow => {
                let buffers = u32::try_from(job.border.buffers).unwrap_or(u32::MAX);
                if buffers == 0 { Wait::None } else { Wait::Copied(self.copy * buffers) }
            }
        }
    }

    /// Synchronisation of a processor that is the second one of every cut.
    pub(super) fn second(&self, job: &Job<'_>) -> Duration {
        match self.sync(job) {
            Wait::None => Duration::ZERO,
            Wait::Polled(fast) if job.part.is_whole() => fast,
            Wait::Polled(fast) => fast * 2,
            Wait::Copied(copies) if job.part.is_whole() => copies,
            Wait::Copied(copies) => copies + self.submit,
        }
    }

    /// The nodes of a node's kernel, within a job.
    pub(super) fn kernel(&self, job: &Job<'_>, node: usize) -> std::ops::Range<usize> {
        self.groups.kernel(node, job.first, job.end)
    }

    /// The shape of the weights of some nodes of a kernel, in a part.
    pub(super) fn weight_shape(&self, nodes: std::ops::Range<usize>, part: &Part) -> WeightShape {
        Groups::weight_shape(&self.graph, &self.bits, nodes, part)
    }

    /// A node's share of the time of its kernel, in proportion to its output channels. The shares of
    /// all nodes add up to the whole.
    pub(super) fn share(&self, job: &Job<'_>, node: usize, kernel_nanos: f64) -> Duration {
        let nodes = self.kernel(job, node);
        let all = self.weight_shape(nodes.clone(), job.part).outputs;
        if all == 0.0 {
            return Duration::ZERO;
        }
        let upto = |end: usize| {
            let part = self.weight_shape(nodes.start..end, job.part).outputs / all;
            (kernel_nanos * part).round() as u64
        };
        Duration::from_nanos(upto(node + 1) - upto(node))
    }

    /// Rows that a node computes.
    pub(super) fn rows(&self, job: &Job<'_>, node: usize) -> usize {
        rows_of(&self.graph, node, job.part, job.batch)
    }

    /// The products of the experts of a node: one kernel multiplies with gates and ups, another with downs. Of the weights, those
    /// of as many experts count as its rows touch on average.
    pub(super) fn experts(&self, job: &Job<'_>, node: usize) -> Products {
        let Op::Experts(op) = &self.graph.nodes()[node].op else { return Products::NONE };
        let mut one = [0.0; 3];
        for matrix in op.matrices() {
            let WeightId(id) = matrix.weight;
            let spec = &self.graph.weights()[id];
            let values = (matrix.rows * spec.cols) as f64;
            let stored = (matrix.rows * spec.dtype.row_bytes(spec.cols).unwrap_or(0)) as f64;
            let of = [values, values * self.bits[id] / 8.0, stored];
            one.iter_mut().zip(of).for_each(|(sum, value)| *sum += value);
        }
        let [values, bytes, stored] = one;
        let read = self.graph.matrix_bytes(node, job.part, job.batch) as f64;
        let touched = read / stored.max(1.0);
        let flops = self.graph.part_cost(node, job.part, job.batch).flops as f64;
        let weights = touched * values;
        let rows = flops / (2.0 * weights).max(1.0);
        Products { kernels: 2.0, weights, bytes: touched * bytes, flops, rows: rows.round() }
    }

    /// Bytes that an element-wise op moves for `rows` rows.
    fn element_bytes(&self, job: &Job<'_>, node: usize, rows: usize) -> f64 {
        let node = &self.graph.nodes()[node];
        let width = |value| self.graph.value(value).width as f64;
        let out = job.part.features.of_width(self.graph.value(node.output).width).len() as f64;
        let info = node.op.info();
        let read = match info.reads {
            Reads::Places => node.inputs.len() as f64 * out,
            Reads::Inputs => node.inputs.iter().map(|value| width(*value)).sum(),
        };
        let read = read + if info.reads_table { out } else { 0.0 };
        self.element_bytes * rows as f64 * (read + out)
    }

    /// FLOPs of the attention of a chunk, 4·s·c·q for s rows, c keys up to the end of the chunk and q
    /// query channels; and bytes of the keys and values that it reads, in fp16. With a sliding window,
    /// s rows read at most window + s keys. With a sparse mask, only what it lets the rows see counts.
    fn attention(&self, job: &Job<'_>, node: usize, mask: &Mask) -> (f64, f64) {
        let inputs = &self.graph.nodes()[node].inputs;
        let width = |at: usize| inputs.get(at).map_or(0.0, |v| self.graph.value(*v).width as f64);
        let spans = job.batch.spans.iter();
        let (mut pairs, mut keys) = (0.0, 0.0);
        for span in spans {
            let (rows, end) = (span.rows.len(), span.start + span.rows.len());
            let keys_read = match mask {
                Mask::Causal | Mask::Full => end as f64,
                Mask::Window(window) => end.min(window.saturating_add(rows)) as f64,
                sparse => {
                    let (start, rows) = (span.start as u64, rows as u64);
                    pairs += sparse.seen_positions(start, rows) as f64;
                    keys += sparse.read_positions(start, rows) as f64;
                    continue;
                }
            };
            pairs += rows as f64 * keys_read;
            keys += keys_read;
        }
        (4.0 * pairs * width(0), 2.0 * keys * (width(1) + width(2)))
    }

    /// Time and memory load of an op other than a matmul, on a processor with these rates.
    pub(super) fn other(&self, job: &Job<'_>, node: usize, rates: NonMatmulRates) -> NodeTime {
        if let Op::Attention(op) = &self.graph.nodes()[node].op {
            let (flops, bytes) = self.attention(job, node, &op.seen());
            return NodeTime::of(flops / rates.attention * 1e-3, bytes, rates);
        }
        if let Op::Experts(_) = &self.graph.nodes()[node].op {
            let Products { flops, bytes, .. } = self.experts(job, node);
            return NodeTime::of(flops / rates.attention * 1e-3, bytes, rates);
        }
        let rows = match &job.part.graphs[..] {
            [] => self.rows(job, node),
            graphs => graphs.iter().sum(),
        };
        NodeTime::of(0.0, self.element_bytes(job, node, rows), rates)
    }
}

/// How a job synchronises with the devices that computed its inputs.
#[derive(Clone, Copy, Debug)]
pub(super) enum Wait {
    /// Not at all.
    None,
    /// By polling a flag, in this time.
    Polled(Duration),
    /// By copies, which end with an empty queue.
    Copied(Duration),
}

/// Products with weights.
#[derive(Clone, Copy, Debug)]
pub(super) struct Products {
    /// Kernels.
    pub(super) kernels: f64,
    /// Weights that are read.
    pub(super) weights: f64,
    /// Bytes of these.
    pub(super) bytes: f64,
    /// Operations; a multiply-add counts as two.
    pub(super) flops: f64,
    /// Rows for each weight.
    pub(super) rows: f64,
}

impl Products {
    /// No product.
    const NONE: Products =
        Products { kernels: 0.0, weights: 0.0, bytes: 0.0, flops: 0.0, rows: 0.0 };
}

/// Rates of ops other than matmuls.
#[derive(Clone, Copy, Debug)]
pub(super) struct NonMatmulRates {
    /// Rate of attention, in TFLOP/s; on the CPU also of experts.
    pub(super) attention: f64,
    /// Memory bandwidth, in GB/s.
    pub(super) bandwidth: f64,
    /// Minimum time of an element-wise kernel, in ns.
    pub(super) element_kernel: f64,
}

/// The time of a kernel, and its load on memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct NodeTime {
    /// Nanoseconds.
    pub(super) nanos: f64,
    pub(super) load: NodeLoad,
}

impl NodeTime {
    /// No time and no load.
    pub(super) const ZERO: NodeTime = NodeTime { nanos: 0.0, load: NodeLoad::NONE };

    /// The time of a kernel that computes for `compute` ns and moves so many bytes.
    fn of(compute: f64, bytes: f64, rates: NonMatmulRates) -> NodeTime {
        let (memory, others) = (bytes / rates.bandwidth, compute.max(rates.element_kernel));
        let load = NodeLoad { bytes, memory_bound: memory >= others, joins: false };
        NodeTime { nanos: memory.max(others), load }
    }
}

/// A duration, rounded to whole nanoseconds.
pub(super) fn nanos(nanos: f64) -> Duration {
    Duration::from_nanos(nanos.round() as u64)
}

/// A node's share of the load of its kernel, in proportion to its output channels.
pub(super) fn node_load(shared: &Shared, job: &Job<'_>, node: usize, load: NodeLoad) -> NodeLoad {
    let kernel = shared.kernel(job, node);
    let all = shared.weight_shape(kernel.clone(), job.part).outputs;
    let own = shared.weight_shape(node..node + 1, job.part).outputs;
    let part = if all > 0.0 { own / all } else { 1.0 };
    NodeLoad { bytes: load.bytes * part, joins: node > kernel.start, ..load }
}
