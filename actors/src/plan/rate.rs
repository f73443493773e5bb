//! Time models of devices that are held to stated rates, and of a modelled NPU.

use std::sync::Arc;
use std::time::Duration;

use lapwing_kernels::cost::Cost;
use lapwing_kernels::device::Batch;
use lapwing_kernels::graph::{Graph, RowSet};
use lapwing_kernels::part::Part;

use super::time::{Job, TimeModel};

/// Rates and fixed times of a device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    /// 10⁹ floating-point operations per second, which is operations per nanosecond.
    pub gflops: f64,
    /// 10⁹ bytes per second, which is bytes per nanosecond.
    pub gbps: f64,
    /// Submission behind work that is running: 10–20 µs on the processors of S2-13.
    pub submit_queued: Duration,
    /// Submission to a device that has nothing to do: 50–100 µs more (S2-13).
    pub submit_idle: Duration,
    /// Synchronisation when inputs come from another device: about 400 µs with a full stop of
    /// the queue (S2-12), 14.5 µs with fast synchronisation.
    pub sync: Duration,
}

/// Roofline: a node takes max(operations / rate, bytes / bandwidth), so that small ones are bound
/// by memory and the rate is flat once they are large (S2-11). A job takes, beside its nodes, one
/// submission, and one synchronisation if its inputs come from another device.
#[derive(Clone, Debug)]
pub struct RateModel {
    graph: Arc<Graph>,
    rate: Rate,
}

impl RateModel {
    /// The model of a device of these rates.
    ///
    /// # Errors
    /// [`RateError`] unless both rates are positive and finite.
    pub fn new(graph: Arc<Graph>, rate: Rate) -> Result<RateModel, RateError> {
        for (name, value) in [("gflops", rate.gflops), ("gbps", rate.gbps)] {
            if !(value.is_finite() && value > 0.0) {
                return Err(RateError { name, value });
            }
        }
        Ok(RateModel { graph, rate })
    }

    /// Its rates.
    pub fn rate(&self) -> Rate {
        self.rate
    }
}

/// A rate that no device has.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error("{name} is {value}; a device's rate must be a positive number")]
pub struct RateError {
    /// Name of the rate.
    pub name: &'static str,
    /// Its value.
    pub value: f64,
}

impl TimeModel for RateModel {
    fn overhead(&self, job: &Job<'_>) -> Duration {
        let Rate { submit_queued, submit_idle, sync, .. } = self.rate;
        let submit = if job.queued { submit_queued } else { submit_idle };
        if job.crossed { submit + sync } else { submit }
    }

    fn node_time(&self, job: &Job<'_>, node: usize) -> Duration {
        let time = |cost: Cost| {
            (cost.flops as f64 / self.rate.gflops).max(cost.bytes as f64 / self.rate.gbps)
        };
        let nanos: f64 = match &job.part.graphs[..] {
            [] => time(self.graph.part_cost(node, job.part, job.batch)),
            sizes => sizes.iter().map(|rows| time(graph_cost(&self.graph, job, node, *rows))).sum(),
        };
        Duration::from_nanos(nanos.ceil() as u64)
    }
}

/// Cost of a node in a static graph of so many rows: padding costs what other rows do.
fn graph_cost(graph: &Graph, job: &Job<'_>, node: usize, rows: usize) -> Cost {
    let part = Part { rows: Some(0..rows), graphs: Vec::new(), ..job.part.clone() };
    match graph.value(graph.nodes()[node].output).rows {
        RowSet::All => graph.part_cost(node, &part, job.batch),
        RowSet::Selected => {
            let batch = Batch { selected: (0..rows).collect(), ..Batch::default() };
            graph.part_cost(node, &part, &batch)
        }
    }
}
