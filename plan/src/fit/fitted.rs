//! A cost model from the fits of all devices.

use std::sync::Arc;
use std::time::Duration;

use lapwing_kernels::device::{Batch, GraphKey};
use lapwing_kernels::graph::Graph;
use lapwing_kernels::op::Op;
use lapwing_kernels::part::OperandOrder;

use crate::array::GraphSize;

use super::device::{Device, DeviceFit, FixedTimes, fit_device};
use super::errors::Errors;
use super::group::Query;
use super::trust::Trust;
use crate::cost::CostModel;
use crate::device::DeviceId;
use crate::profile::data::Profile;
use crate::profile::error::ProfileError;
use crate::shape::{OpShape, convert_bytes, rows_of};
use crate::time::{Crossing, Job};

mod times;

pub use times::FittedTimes;

/// A cost model fitted to a profile.
pub struct Fitted {
    graph: Arc<Graph>,
    devices: Vec<Device>,
    fits: Vec<DeviceFit>,
    errors: Errors,
    widths: Errors,
    trust: Trust,
    sync: Duration,
    copy_rate: f64,
    source: String,
}

impl Fitted {
    /// Fits every device of a profile, for the ops of a model.
    ///
    /// # Errors
    /// [`ProfileError`] if a value of the profile is out of range.
    pub fn new(profile: &Profile, graph: Arc<Graph>) -> Result<Fitted, ProfileError> {
        profile.check()?;
        let mut fits = Vec::new();
        let mut devices = Vec::new();
        let (mut all, mut all_widths) = (Vec::new(), Vec::new());
        for measured in &profile.devices {
            let (device, fit, (errors, widths)) = fit_device(measured, &graph);
            devices.push(device);
            fits.push(fit);
            all.extend(errors);
            all_widths.extend(widths);
        }
        let (errors, widths) = (Errors::of(all), Errors::of(all_widths));
        let machine = &profile.machine;
        let mut source = format!(
            "measured on {} ({} threads, {}, {}); cross-validated error {errors}, at left-out widths {widths}",
            machine.cpu, machine.cores, machine.isa, machine.os
        );
        for DeviceFit { name, unmeasured, .. } in fits.iter().filter(|f| !f.unmeasured.is_empty()) {
            source.push_str(&format!("; no time of {} on {name}", unmeasured.join(", ")));
        }
        let points = profile.devices.iter().map(|device| device.samples.len()).sum();
        let asked = profile.devices.iter().map(|device| device.asked).sum();
        let trust = Trust::of(points, asked, errors);
        let (sync, copy_rate) = (profile.sync.median(), profile.copy_bytes_per_second);
        Ok(Fitted { graph, devices, fits, errors, widths, trust, sync, copy_rate, source })
    }

    /// The fit of each device, with its error.
    pub fn devices(&self) -> &[DeviceFit] {
        &self.fits
    }

    /// Cross-validated error over all devices.
    pub fn errors(&self) -> Errors {
        self.errors
    }

    /// How far the predictions can be trusted.
    pub fn trust(&self) -> &Trust {
        &self.trust
    }

    /// Error at left-out widths over all devices.
    pub fn width_errors(&self) -> Errors {
        self.widths
    }

    fn node_time(&self, device: &Device, job: &Job<'_>, node: usize) -> f64 {
        let swapped = usize::from(job.part.order == OperandOrder::Swapped);
        let value = self.graph.value(self.graph.nodes()[node].output);
        let n = job.part.features.of_width(value.width).len();
        let rows = rows_of(&self.graph, node, job.part, job.batch);
        // Of a part of the experts, the work and the weights that are read are that part of the whole's.
        let share = self.graph.expert_share(node, job.part);
        if rows == 0 || n == 0 || share == 0.0 {
            return 0.0;
        }
        let Some(group) = device.of_node[node][swapped].map(|g| &device.groups[g]) else {
            return share * device.unmeasured(&self.graph, node, n, rows);
        };
        match &job.part.graphs[..] {
            [] => {
                let query = match &self.graph.nodes()[node].op {
                    Op::Attention(_) => attention_query(n, &group.shape, job.batch),
                    _ => Query { n, m: rows, context: None, attended: 0.0 },
                };
                share * group.time(query)
            }
            sizes => sizes
                .iter()
                .map(|m| group.time(Query { n, m: *m, context: None, attended: 0.0 }))
                .sum(),
        }
    }
}

/// The attended positions of several sequences are summed; only one sequence has a context.
fn attention_query(n: usize, shape: &OpShape, batch: &Batch) -> Query {
    let spans = &batch.spans;
    let attended = spans.iter().map(|s| shape.attended(s.rows.len(), s.start)).sum();
    let context = match &spans[..] {
        [one] => Some(one.start),
        _ => None,
    };
    Query { n, m: batch.rows(), context, attended }
}

impl CostModel for Fitted {
    fn source(&self) -> String {
        self.source.clone()
    }

    fn job_time(&self, device: DeviceId, job: &Job<'_>) -> Duration {
        let Some(device) = self.devices.get(device.0) else { return Duration::MAX };
        let FixedTimes { convert_ns_per_byte, .. } = device.fixed;
        let nodes: f64 = (job.first..job.end).map(|node| self.node_time(device, job, node)).sum();
        // Samples exclude conversion, since the nodes of a graph share one conversion of inputs and
        // outputs.
        let bytes = convert_bytes(&self.graph, job.first..job.end, job.part, job.batch);
        let nanos = nodes + bytes as f64 * convert_ns_per_byte;
        device.fixed.before(job) + Duration::from_nanos(nanos.round() as u64)
    }

    fn sync_time(&self, crossing: Crossing) -> Duration {
        if crossing.from == crossing.to { Duration::ZERO } else { self.sync }
    }

    fn copy_time(&self, bytes: u64) -> Duration {
        let seconds = bytes as f64 / self.copy_rate;
        Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
    }

    fn prepare_time(&self, device: DeviceId, key: &GraphKey) -> Duration {
        let Some(device) = self.devices.get(device.0) else { return Duration::MAX };
        let GraphSize { rows, weights } = GraphSize::of(&self.graph, key);
        let nanos =
            device.fixed.preparation.as_ref().map(|c| c.at(0, rows as f64 * weights as f64));
        Duration::from_nanos(nanos.unwrap_or(0.0).round() as u64)
    }
}
