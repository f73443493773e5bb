//! A cost model from a profile: measured points as they are, everything else predicted, always
//! with its cross-validated error.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use lapwing_kernels::device::{Batch, DeviceInfo, DeviceKind, GraphKey};
use lapwing_kernels::graph::Graph;
use lapwing_kernels::op::Op;
use lapwing_kernels::part::{OperandOrder, Part};

use super::DeviceId;
use super::array::GraphSize;
use super::cost::CostModel;
use super::profile::{DeviceProfile, PrepareSample, Profile, ProfileError, Sample};
use super::shape::{OpShape, convert_bytes, rows_of, seen};
use super::time::{Crossing, Job};

mod curve;
mod errors;
mod group;

pub use curve::{Curve, Point};
pub use errors::Errors;
use group::{Group, Query};

/// What is known of one device.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceFit {
    /// Its name.
    pub name: String,
    /// What predicts it best: `fit` (linear, knee or between points, per op shape) or `tree`
    /// (decision-tree regression, S2-37).
    pub model: &'static str,
    /// Its error at measured points, each left out of the fit.
    pub errors: Errors,
    /// Its error at widths between others, all points of the width left out.
    pub widths: Errors,
    /// The error of what predicts it worse.
    pub other: Errors,
    /// Kinds of ops that it can run and of which no time was measured: they are priced by the
    /// work of the others, which can be far off.
    pub unmeasured: Vec<&'static str>,
}

/// Predictions from a profile.
pub struct Fitted {
    graph: Arc<Graph>,
    devices: Vec<Device>,
    fits: Vec<DeviceFit>,
    errors: Errors,
    widths: Errors,
    sync: Duration,
    copy_rate: f64,
    source: String,
}

/// A device's groups of shapes, and the group of every node, by the order of operands.
struct Device {
    groups: Vec<Group>,
    of_node: Vec<[Option<usize>; 2]>,
    profile: Fixed,
}

/// Times that do not depend on the op.
struct Fixed {
    submit_idle: Duration,
    submit_queued: Duration,
    crossing: Duration,
    convert_ns_per_byte: f64,
    /// a + b·rows·weights (S2-49), if any preparation was measured.
    preparation: Option<Curve>,
}

impl Fitted {
    /// Fits every device of a profile, for the ops of a model.
    ///
    /// # Errors
    /// [`ProfileError`] when a value of the profile makes no sense.
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
        let (sync, copy_rate) = (profile.sync.median(), profile.copy_bytes_per_second);
        Ok(Fitted { graph, devices, fits, errors, widths, sync, copy_rate, source })
    }

    /// What predicts each device, with its error.
    pub fn devices(&self) -> &[DeviceFit] {
        &self.fits
    }

    /// Cross-validated error over all devices.
    pub fn errors(&self) -> Errors {
        self.errors
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
        if rows == 0 || n == 0 {
            return 0.0;
        }
        let Some(group) = device.of_node[node][swapped].map(|g| &device.groups[g]) else {
            return device.unmeasured(&self.graph, node, (n, rows));
        };
        match &job.part.graphs[..] {
            [] => {
                let query = match &self.graph.nodes()[node].op {
                    Op::Attention(op) => attention_query(n, op.window, job.batch),
                    _ => Query { n, m: rows, context: None, seen: 0.0 },
                };
                group.time(query)
            }
            sizes => {
                sizes.iter().map(|m| group.time(Query { n, m: *m, context: None, seen: 0.0 })).sum()
            }
        }
    }
}

/// Several sequences see as much as the sum of what each sees.
fn attention_query(n: usize, window: Option<usize>, batch: &Batch) -> Query {
    let spans = &batch.spans;
    let seen = spans.iter().map(|s| seen(s.rows.len(), s.start, window)).sum();
    let context = match &spans[..] {
        [one] => Some(one.start),
        _ => None,
    };
    Query { n, m: batch.rows(), context, seen }
}

impl CostModel for Fitted {
    fn source(&self) -> String {
        self.source.clone()
    }

    fn job_time(&self, device: DeviceId, job: &Job<'_>) -> Duration {
        let Some(device) = self.devices.get(device.0) else { return Duration::MAX };
        let Fixed { submit_idle, submit_queued, crossing, convert_ns_per_byte, .. } =
            device.profile;
        let submit = if job.queued { submit_queued } else { submit_idle };
        let crossing = if job.crossed { crossing } else { Duration::ZERO };
        let nodes: f64 = (job.first..job.end).map(|node| self.node_time(device, job, node)).sum();
        // Samples are without conversion: nodes of one graph share one load and one store.
        let bytes = convert_bytes(&self.graph, job.first..job.end, job.part, job.batch);
        let nanos = nodes + bytes as f64 * convert_ns_per_byte;
        submit + crossing + Duration::from_nanos(nanos.round() as u64)
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
            device.profile.preparation.as_ref().map(|c| c.at(0, rows as f64 * weights as f64));
        Duration::from_nanos(nanos.unwrap_or(0.0).round() as u64)
    }
}

impl Device {
    /// An op that nobody measured: the median time per unit of work of its kind, else of all.
    fn unmeasured(&self, graph: &Graph, node: usize, (n, m): (usize, usize)) -> f64 {
        let shape = OpShape { n, ..OpShape::of(graph, node, &Part::WHOLE) };
        let kind = self.groups.iter().filter(|g| g.shape.op == shape.op);
        let mut rates: Vec<f64> = kind.flat_map(Group::rates).collect();
        if rates.is_empty() {
            rates = self.groups.iter().flat_map(Group::rates).collect();
        }
        rates.sort_by(f64::total_cmp);
        rates.get(rates.len() / 2).copied().unwrap_or(0.0) * shape.work(m)
    }
}

/// Fits a device both ways and keeps what predicts unseen points better.
fn fit_device(
    measured: &DeviceProfile,
    graph: &Graph,
) -> (Device, DeviceFit, (Vec<f64>, Vec<f64>)) {
    // A group's shapes differ in their output features only.
    let mut index: HashMap<OpShape, usize> = HashMap::new();
    let mut samples: Vec<(OpShape, Vec<&Sample>)> = Vec::new();
    for sample in &measured.samples {
        let key = OpShape { n: 0, ..sample.shape.clone() };
        let at = *index.entry(key.clone()).or_insert_with(|| {
            samples.push((key, Vec::new()));
            samples.len() - 1
        });
        samples[at].1.push(sample);
    }
    let (curves, curve_errors) = group::with_curves(&samples);
    let (trees, tree_errors) = group::with_trees(&samples);
    let (by_curve, by_tree) = (Errors::of(curve_errors.clone()), Errors::of(tree_errors.clone()));
    let tree_is_better = by_tree.median < by_curve.median;
    let (groups, model, errors, kept, other) = match tree_is_better {
        true => (trees, "tree", tree_errors, by_tree, by_curve),
        false => (curves, "fit", curve_errors, by_curve, by_tree),
    };
    let width_errors = match tree_is_better {
        true => group::left_out_widths(&samples, group::with_trees),
        false => group::left_out_widths(&samples, group::with_curves),
    };
    let of_node = (0..graph.nodes().len()).map(|node| {
        [OperandOrder::Straight, OperandOrder::Swapped].map(|order| {
            let part = Part { order, ..Part::WHOLE };
            index.get(&OpShape { n: 0, ..OpShape::of(graph, node, &part) }).copied()
        })
    });
    let profile = Fixed {
        submit_idle: Duration::from_nanos(measured.submit_idle_ns),
        submit_queued: Duration::from_nanos(measured.submit_queued_ns),
        crossing: Duration::from_nanos(measured.crossing_ns),
        convert_ns_per_byte: measured.convert_ns_per_byte,
        preparation: preparation(&measured.prepares),
    };
    let device = Device { groups, of_node: of_node.collect(), profile };
    let name = measured.name.clone();
    let unmeasured = unmeasured(measured, graph);
    let widths = Errors::of(width_errors.clone());
    let fit = DeviceFit { name, model, errors: kept, widths, other, unmeasured };
    (device, fit, (errors, width_errors))
}

/// Kinds of ops of a graph that a device runs and of which its profile has no sample.
fn unmeasured(measured: &DeviceProfile, graph: &Graph) -> Vec<&'static str> {
    let kinds = [DeviceKind::Cpu, DeviceKind::Gpu, DeviceKind::Npu];
    let kind = kinds.into_iter().find(|kind| kind.name() == measured.kind);
    let Some(kind) = kind else { return Vec::new() };
    let info = DeviceInfo::new(&*measured.name, kind);
    let mut names: Vec<&'static str> = Vec::new();
    for op in graph.nodes().iter().map(|node| &node.op).filter(|op| info.runs(op)) {
        let known = measured.samples.iter().any(|sample| sample.shape.op == op.name());
        if !known && !names.contains(&op.name()) {
            names.push(op.name());
        }
    }
    names
}

/// Time of a preparation against rows · weights (S2-49).
fn preparation(samples: &[PrepareSample]) -> Option<Curve> {
    let points = samples.iter().map(|sample| Point {
        m: 0,
        seen: sample.rows as f64 * sample.weights as f64,
        time: sample.ns as f64,
    });
    Curve::linear(&points.collect::<Vec<_>>())
}

#[cfg(test)]
mod tests;
