//! Time models from stated rates: a roofline, and a systolic array.

use std::sync::Arc;
use std::time::Duration;

use lapwing_kernels::cost::Cost;
use lapwing_kernels::device::{Batch, GraphKey};
use lapwing_kernels::graph::{Graph, Node, RowSet};
use lapwing_kernels::op::Op;
use lapwing_kernels::part::Part;

use crate::array::{GraphSize, Preparation, SystolicArray};
use crate::shape::{convert_bytes, rows_of};
use crate::time::{Job, NodeLoad, TimeModel};

mod link;

pub use link::Link;

/// Rates and fixed times of a device. The times quoted below are those of a Snapdragon 8 Gen 3
/// (HeteroLLM, arXiv 2501.14794).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rates {
    /// Compute rate in GFLOP/s, which is FLOPs per nanosecond.
    pub gflops: f64,
    /// Memory bandwidth in GB/s, which is bytes per nanosecond.
    pub gbps: f64,
    /// Submission to a busy device: 10–20 µs.
    pub submit_queued: Duration,
    /// Submission to an idle device: 50–100 µs more.
    pub submit_idle: Duration,
    /// Synchronisation when inputs come from another device: about 400 µs if the queue is drained
    /// (`clFinish`), 14.5 µs with fast synchronisation.
    pub sync: Duration,
}

impl Rates {
    /// A GPU in the proportions of a phone's, a hundredth as fast: 10 GFLOP/s, 8 GB/s, and fast
    /// synchronisation.
    pub const GPU: Rates = Rates {
        gflops: 10.0,
        gbps: 8.0,
        submit_queued: Duration::from_micros(15),
        submit_idle: Duration::from_micros(75),
        sync: Duration::from_micros(20),
    };

    /// An NPU in the proportions of a phone's, a hundredth as fast: 40 GFLOP/s, 4 GB/s.
    pub const NPU: Rates = Rates { gflops: 40.0, gbps: 4.0, ..Rates::GPU };

    /// A CPU in the proportions of a phone's, about a hundredth as fast: 8 GFLOP/s, 6 GB/s. MNN reaches
    /// 0.79 TFLOP/s on the CPU of a Snapdragon 8 Gen 3 (`presets/sd8gen3.toml`).
    pub const CPU: Rates = Rates {
        gflops: 8.0,
        gbps: 6.0,
        submit_queued: Duration::ZERO,
        submit_idle: Duration::from_micros(5),
        sync: Duration::from_micros(5),
    };

    /// The CPU of a laptop (`presets/laptop.toml`), a thousandth as fast.
    pub const LAPTOP_CPU: Rates = Rates { gflops: 0.694, gbps: 0.0445, ..Rates::CPU };

    /// The GPU of that laptop, a thousandth as fast: more than a hundredth of it would take several cores to emulate.
    pub const LAPTOP_GPU: Rates = Rates {
        gflops: 24.5,
        gbps: 0.218,
        submit_queued: Duration::from_micros(5),
        submit_idle: Duration::from_micros(10),
        sync: Duration::from_micros(20),
    };

    fn check(&self) -> Result<(), RateError> {
        for (name, value) in [("gflops", self.gflops), ("gbps", self.gbps)] {
            if !(value.is_finite() && value > 0.0) {
                return Err(RateError { name, value });
            }
        }
        Ok(())
    }

    fn overhead(&self, job: &Job<'_>) -> Duration {
        let submit = if job.queued { self.submit_queued } else { self.submit_idle };
        if job.crossed { submit + self.sync } else { submit }
    }

    /// Nanoseconds: max(FLOPs / rate, bytes / bandwidth).
    fn time(&self, cost: Cost) -> f64 {
        (cost.flops as f64 / self.gflops).max(cost.bytes as f64 / self.gbps)
    }

    /// Traffic of a node that takes so long. It is bound by memory if it takes as long as its bytes.
    fn load(&self, graph: &Graph, job: &Job<'_>, node: usize, time: Duration) -> NodeLoad {
        let bytes = each_graph(graph, job, node, |cost, _| cost.bytes as f64);
        let memory_bound = bytes > 0.0 && (bytes / self.gbps).ceil() >= time.as_nanos() as f64;
        NodeLoad { bytes, memory_bound, joins: false }
    }
}

/// A roofline: a node takes max(FLOPs / rate, bytes / bandwidth). Small nodes are bound by memory,
/// large ones reach the compute rate. A job adds one submission, and one synchronisation if its
/// inputs come from another device.
#[derive(Clone, Debug)]
pub struct RateModel {
    graph: Arc<Graph>,
    rate: Rates,
    link: Option<Link>,
}

impl RateModel {
    /// The model of a device with these rates.
    ///
    /// # Errors
    /// [`RateError`] if a rate is not positive and finite.
    pub fn new(graph: Arc<Graph>, rate: Rates) -> Result<RateModel, RateError> {
        rate.check()?;
        Ok(RateModel { graph, rate, link: None })
    }

    /// With a memory of its own behind a link.
    ///
    /// # Errors
    /// [`RateError`] if the rate of the link is not positive and finite.
    pub fn with_link(self, link: Link) -> Result<RateModel, RateError> {
        match link.gbps.is_finite() && link.gbps > 0.0 {
            true => Ok(RateModel { link: Some(link), ..self }),
            false => Err(RateError { name: "the link's gbps", value: link.gbps }),
        }
    }

    /// Its rates.
    pub fn rate(&self) -> Rates {
        self.rate
    }
}

/// A rate that is not positive and finite.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error("{name} is {value}; a device's rate must be a positive number")]
pub struct RateError {
    /// Name of the rate.
    pub name: &'static str,
    /// Its value.
    pub value: f64,
}

impl TimeModel for RateModel {
    /// Bytes / bandwidth.
    fn convert_time(&self, bytes: u64) -> Duration {
        Duration::from_nanos((bytes as f64 / self.rate.gbps).ceil() as u64)
    }

    fn link_time(&self, bytes: u64) -> Option<Duration> {
        Some(self.link?.time(bytes))
    }

    fn conversion(&self, job: &Job<'_>) -> Duration {
        self.convert_time(convert_bytes(&self.graph, job.first..job.end, job.part, job.batch))
    }

    fn overhead(&self, job: &Job<'_>) -> Duration {
        self.rate.overhead(job)
    }

    fn node_time(&self, job: &Job<'_>, node: usize) -> Duration {
        let nanos = each_graph(&self.graph, job, node, |cost, _| self.rate.time(cost));
        Duration::from_nanos(nanos.ceil() as u64)
    }

    fn load(&self, job: &Job<'_>, node: usize) -> NodeLoad {
        self.rate.load(&self.graph, job, node, self.node_time(job, node))
    }
}

/// Numbers of a modelled NPU.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ArrayRate {
    /// The array that runs matmuls.
    pub array: SystolicArray,
    /// Rates of all other ops, and the memory bandwidth of matmuls.
    pub rate: Rates,
    /// Time of graph preparation.
    pub preparation: Preparation,
}

/// A modelled NPU. A matmul takes the time of the array or of its bytes, whichever is longer; other
/// ops take the time of a [`RateModel`]. The graphs of a part run one after another, and a padding
/// row costs as much as any other row.
///
/// A matmul of m rows, fewer than the array has cells along a side, takes m times the time to read the
/// weights at the bandwidth of the device if that is shorter: HeteroInfer (SOSP 2025, Table 3)
/// measures an NPU's matmuls of one row at the rate of its memory, slower by N/K for fewer output
/// channels N than inputs K. That m rows take m such passes is an assumption.
#[derive(Clone, Debug)]
pub struct ArrayModel {
    graph: Arc<Graph>,
    rates: ArrayRate,
}

impl ArrayModel {
    /// The model of an NPU.
    ///
    /// # Errors
    /// [`RateError`] if a rate is not positive and finite.
    pub fn new(graph: Arc<Graph>, rates: ArrayRate) -> Result<ArrayModel, RateError> {
        rates.rate.check()?;
        let flops = rates.array.flops;
        match flops.is_finite() && flops > 0.0 {
            true => Ok(ArrayModel { graph, rates }),
            false => Err(RateError { name: "the array's flops", value: flops }),
        }
    }

    /// Its rates.
    pub fn rates(&self) -> ArrayRate {
        self.rates
    }
}

impl TimeModel for ArrayModel {
    /// Bytes / bandwidth.
    fn convert_time(&self, bytes: u64) -> Duration {
        Duration::from_nanos((bytes as f64 / self.rates.rate.gbps).ceil() as u64)
    }

    fn conversion(&self, job: &Job<'_>) -> Duration {
        self.convert_time(convert_bytes(&self.graph, job.first..job.end, job.part, job.batch))
    }

    fn overhead(&self, job: &Job<'_>) -> Duration {
        self.rates.rate.overhead(job)
    }

    fn node_time(&self, job: &Job<'_>, node: usize) -> Duration {
        let ArrayRate { array, rate, .. } = &self.rates;
        let Node { op, output, .. } = &self.graph.nodes()[node];
        let nanos = each_graph(&self.graph, job, node, |cost, rows| match op {
            Op::MatMul { weight, .. } => {
                let outputs = self.graph.value(*output).width;
                let inputs = self.graph.weights()[weight.0].cols;
                let shape = [rows, inputs, job.part.features.of_width(outputs).len()];
                let mut matmul = array.matmul_time(shape, job.part.order).as_secs_f64() * 1e9;
                if rows < array.size {
                    let one = graph_cost(&self.graph, job, node, 1).bytes as f64 / rate.gbps;
                    let ratio = outputs as f64 / inputs as f64;
                    matmul = matmul.min(rows as f64 * one / array.rate_at(ratio));
                }
                matmul.max(cost.bytes as f64 / rate.gbps)
            }
            _ => rate.time(cost),
        });
        Duration::from_nanos(nanos.ceil() as u64)
    }

    fn load(&self, job: &Job<'_>, node: usize) -> NodeLoad {
        self.rates.rate.load(&self.graph, job, node, self.node_time(job, node))
    }

    fn prepare_time(&self, key: &GraphKey) -> Duration {
        self.rates.preparation.time(GraphSize::of(&self.graph, key))
    }
}

/// Nanoseconds of a node: of all its rows at once, or the sum over its graphs.
pub(crate) fn each_graph(
    graph: &Graph,
    job: &Job<'_>,
    node: usize,
    time: impl Fn(Cost, usize) -> f64,
) -> f64 {
    match &job.part.graphs[..] {
        [] => {
            let rows = rows_of(graph, node, job.part, job.batch);
            time(graph.part_cost(node, job.part, job.batch), rows)
        }
        sizes => sizes.iter().map(|rows| time(graph_cost(graph, job, node, *rows), *rows)).sum(),
    }
}

/// Cost of a node in a static graph of `rows` rows, padding rows included.
fn graph_cost(graph: &Graph, job: &Job<'_>, node: usize, rows: usize) -> Cost {
    let part = Part { rows: Some(0..rows), graphs: Vec::new(), ..job.part.clone() };
    match graph.value(graph.nodes()[node].output).rows {
        RowSet::All | RowSet::Passed => graph.part_cost(node, &part, job.batch),
        RowSet::Selected => {
            let batch = Batch { selected: (0..rows).collect(), ..Batch::default() };
            graph.part_cost(node, &part, &batch)
        }
    }
}
