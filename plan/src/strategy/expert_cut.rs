//! The experts of each layer divided between devices.

use std::ops::Range;
use std::sync::Arc;

use lapwing_kernels::device::{DeviceInfo, NodeOnDevice};
use lapwing_kernels::graph::Graph;
use lapwing_kernels::op::Op;
use lapwing_kernels::part::Part;

use super::entry::{StrategyEntry, builtin};
use super::interface::{PlanInput, Strategy};
use super::options::Ratio;
use super::roles::{Needs, Roles};
use super::route_builder::RouteBuilder;
use crate::chunk::ChunkShape;
use crate::device::{DeviceId, needs_graphs};
use crate::error::PlanError;
use crate::route::Route;

mod division;
mod lines;

use division::Division;
use lines::Lines;

/// A cut by expert: of each layer's experts, each device computes its own, for all rows that have chosen them, at the same time. Nothing
/// is added up between devices: what an expert makes of a row has a place of its own until all are mixed. A device needs only the
/// weights of its experts.
///
/// T = Σ_layers max_d T(d, n_d) + T_sync + T_copy, with Σ n_d = all experts of the layer; rows touch n_d / n of the experts that they
/// touch altogether. The n_d are the same for all layers. Without a ratio they minimise T, of the shape of each chunk; if a device has a
/// memory of its own, that of a request with a full chunk and a decode step for each eight of its rows, within the memories, so that
/// each weight is loaded once. All other ops run on the GPU, or on the CPU if there is no GPU, or it lacks one of them or the memory for them. A
/// model without experts runs there, too.
#[derive(Clone, Debug, Default)]
pub struct ExpertCut {
    /// Units of each processor that can compute experts; `None` for those that minimise the predicted time.
    pub ratio: Option<Ratio>,
}

pub(super) const ENTRY: StrategyEntry = builtin(
    "expert-cut",
    "experts of every layer divided between devices, also in decode",
    &[],
    |o, _| Arc::new(ExpertCut { ratio: o.ratio.clone() }),
);

impl Strategy for ExpertCut {
    fn name(&self) -> &str {
        "expert-cut"
    }

    fn route(&self, input: &PlanInput<'_>, shape: &ChunkShape) -> Result<Arc<Route>, PlanError> {
        let (graph, devices) = (input.graph, able(input));
        let other = other(self.name(), input)?;
        let mut stages = RouteBuilder::new(input, shape);
        let name = |device: DeviceId| input.devices[device.0].name.as_str();
        let count = experts(graph).map(|(_, count)| count).max().unwrap_or(0);
        if count == 0 || devices.len() < 2 {
            stages.on(other, stages.nodes());
            let why = match count {
                0 => "the model has no experts to divide",
                _ => "no second device computes experts",
            };
            return stages.finish(format!("{why}; all on {}", name(other)));
        }
        let division = match &self.ratio {
            Some(ratio) => Division::by_ratio(&devices, ratio),
            None => Lines::new(input, shape, other).divide(&devices, count),
        };
        for (nodes, experts) in stages.runs(|node| count_of(graph, node).map(|of| (node, of))) {
            let Some((_, of)) = experts else {
                stages.on(other, nodes);
                continue;
            };
            match &division.of_layer(of)[..] {
                [(device, _)] => stages.on(*device, nodes),
                parts => {
                    let part = |(device, own): &(DeviceId, Range<usize>)| {
                        (*device, Part::of_experts(own.clone()))
                    };
                    stages.divided(nodes, parts.iter().map(part).collect());
                }
            }
        }
        let reason = format!(
            "{} experts of every layer divided {}; all else on {}",
            count,
            division.about(count, name),
            name(other)
        );
        stages.finish(reason)
    }
}

/// Number of experts of a node, if it computes some.
fn count_of(graph: &Graph, node: usize) -> Option<usize> {
    graph.can_cut_experts(node..node + 1).map(|op| op.count)
}

/// Each node of experts, with their number.
fn experts(graph: &Graph) -> impl Iterator<Item = (usize, usize)> + '_ {
    (0..graph.nodes().len()).filter_map(|node| Some((node, count_of(graph, node)?)))
}

/// The devices that can compute some experts, the fastest in prefill first: those that run the ops of experts for any number of rows.
fn able(input: &PlanInput<'_>) -> Vec<DeviceId> {
    let runs = |info: &DeviceInfo| {
        let mut ops = input.graph.nodes().iter().map(|node| &node.op);
        !needs_graphs(info) && ops.all(|op| !matches!(op, Op::Experts(_)) || info.runs(op))
    };
    let first = Roles::of(input.devices).fastest_first();
    let others = (0..input.devices.len()).map(DeviceId).filter(|device| !first.contains(device));
    let all = first.iter().copied().chain(others);
    all.filter(|device| runs(&input.devices[device.0])).collect()
}

/// The device of all ops but experts: the GPU, or the CPU if there is no GPU, it lacks one of these ops, or they do not fit into its
/// memory.
fn other(strategy: &str, input: &PlanInput<'_>) -> Result<DeviceId, PlanError> {
    let helper = Needs { strategy, devices: input.devices }.helper()?;
    let rest = rest(input.graph);
    let runs = |device: &DeviceId| {
        let mut ops = rest.iter().map(|at| &input.graph.nodes()[at.node].op);
        ops.all(|op| input.devices[device.0].runs(op))
    };
    let fits = |device: &DeviceId| runs(device) && has_room(input, *device, &rest);
    let host = Roles::of(input.devices).host();
    Ok([Some(helper), host].into_iter().flatten().find(fits).unwrap_or(helper))
}

/// All ops but experts.
fn rest(graph: &Graph) -> Vec<NodeOnDevice> {
    let others = (0..graph.nodes().len()).filter(|node| count_of(graph, *node).is_none());
    others.map(NodeOnDevice::from).collect()
}

/// Whether a device's own memory, if it has one, holds what these nodes need.
fn has_room(input: &PlanInput<'_>, device: DeviceId, nodes: &[NodeOnDevice]) -> bool {
    let info = &input.devices[device.0];
    let need = || info.need(input.graph, nodes.iter().cloned()).bytes();
    info.room.as_ref().is_none_or(|room| need() <= room.bytes)
}
