//! The fit of one device.

use std::collections::HashMap;
use std::time::Duration;

use lapwing_kernels::device::{DeviceInfo, DeviceKind};
use lapwing_kernels::graph::Graph;
use lapwing_kernels::part::{OperandOrder, Part};

use super::curve::{Curve, Point};
use super::errors::Errors;
use super::group::{self, Group};
use crate::profile::data::{DeviceProfile, PrepareSample, Sample};
use crate::shape::OpShape;
use crate::time::Job;

/// The model of one device, with its errors.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceFit {
    /// Name of the device.
    pub name: String,
    /// The better model: `fit` (linear, two lines with a knee, or interpolated, per op shape) or
    /// `tree` (decision-tree regression).
    pub model: &'static str,
    /// Its error at measured points, each left out of the fit.
    pub errors: Errors,
    /// Its error at inner widths, with all points of that width left out.
    pub widths: Errors,
    /// The error of the other model.
    pub other: Errors,
    /// Kinds of ops that the device can run but of which no time was measured. Their time is
    /// estimated from other ops, by work, and can be far off.
    pub unmeasured: Vec<&'static str>,
}

/// The groups of a device, and the group of each node.
pub(super) struct Device {
    pub(super) groups: Vec<Group>,
    /// Index of the group by node and operand order; `None` if no sample has its shape.
    pub(super) of_node: Vec<[Option<usize>; 2]>,
    pub(super) fixed: FixedTimes,
}

/// Times that do not depend on the op.
pub(super) struct FixedTimes {
    pub(super) submit_idle: Duration,
    pub(super) submit_queued: Duration,
    pub(super) crossing: Duration,
    pub(super) convert_ns_per_byte: f64,
    /// Preparation time a + b·rows·weights; `None` if none was measured.
    pub(super) preparation: Option<Curve>,
}

impl FixedTimes {
    /// Submission, and what inputs of another device add to it.
    pub(super) fn before(&self, job: &Job<'_>) -> Duration {
        let submit = if job.queued { self.submit_queued } else { self.submit_idle };
        submit + if job.crossed { self.crossing } else { Duration::ZERO }
    }
}

impl Device {
    /// Nanoseconds of an unmeasured op of `n` output channels and `m` rows: its work times the median
    /// time per work of ops of its kind, or of all ops.
    pub(super) fn unmeasured(&self, graph: &Graph, node: usize, n: usize, m: usize) -> f64 {
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

/// Fits curves and trees to a device, and keeps the model that predicts left-out points better.
pub(super) fn fit_device(
    measured: &DeviceProfile,
    graph: &Graph,
) -> (Device, DeviceFit, (Vec<f64>, Vec<f64>)) {
    // The shapes of a group differ in output channels only.
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
    let fixed = FixedTimes {
        submit_idle: Duration::from_nanos(measured.submit_idle_ns),
        submit_queued: Duration::from_nanos(measured.submit_queued_ns),
        crossing: Duration::from_nanos(measured.crossing_ns),
        convert_ns_per_byte: measured.convert_ns_per_byte,
        preparation: preparation(&measured.prepares),
    };
    let device = Device { groups, of_node: of_node.collect(), fixed };
    let name = measured.name.clone();
    let unmeasured = unmeasured(measured, graph);
    let widths = Errors::of(width_errors.clone());
    let fit = DeviceFit { name, model, errors: kept, widths, other, unmeasured };
    (device, fit, (errors, width_errors))
}

/// Kinds of ops of the graph that the device can run but of which its profile has no sample.
fn unmeasured(measured: &DeviceProfile, graph: &Graph) -> Vec<&'static str> {
    let Some(kind) = DeviceKind::by_name(&measured.kind) else { return Vec::new() };
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

/// Preparation time, linear in rows · weights.
fn preparation(samples: &[PrepareSample]) -> Option<Curve> {
    let points = samples.iter().map(|sample| Point {
        m: 0,
        attended: sample.rows as f64 * sample.weights as f64,
        time: sample.ns as f64,
    });
    Curve::linear(&points.collect::<Vec<_>>())
}
