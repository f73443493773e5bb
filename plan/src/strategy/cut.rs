//! The two ways to divide a stage between devices, and the parts that several strategies share.
//!
//! A stage computes rows (tokens) × output channels. Two devices divide it in one of two ways:
//!
//! ```text
//!            row cut                           sequence cut
//!        output channels                     output channels
//!      ┌────────────┬───────┐              ┌────────────────────┐
//!      │            │       │              │        NPU         │
//! rows │    NPU     │  GPU  │         rows │                    │
//!      │            │       │              ├────────────────────┤
//!      │            │       │              │        GPU         │
//!      └────────────┴───────┘              └────────────────────┘
//! ```
//!
//! * A **row cut** divides output channels, which are the rows of the weight matrix. Each device
//!   reads only its own part of the weights, and all rows of the input. In decode the devices
//!   therefore add up their memory bandwidths. HeteroInfer (SOSP 2025) calls it weight-centric.
//! * A **sequence cut** divides rows. Each device reads all of the weights, and only its own rows.
//!   HeteroInfer calls it activation-centric.
//!
//! Two variants follow from the NPU's static graphs, which exist for a few standard row counts only:
//!
//! * A **hybrid cut** is a row cut whose NPU part is padded to the next standard size.
//! * A **multi-sequence cut** is a sequence cut whose NPU part runs several standard sizes in turn.
//!
//! In every case the outputs of the parts are merged into one value before the next stage (T_copy).
//! The names are those of HeteroLLM (arXiv 2501.14794).

use std::ops::Range;
use std::sync::Arc;

use lapwing_kernels::graph::Graph;
use lapwing_kernels::part::{Part, Share};

use super::interface::PlanInput;
use super::proportion::Proportion;
use super::roles::{Needs, Roles};
use super::route_builder::{RouteBuilder, is_selected, is_static};
use super::sizes;
use super::static_npu::StaticNpu;
use crate::blocks::{BlockKind, blocks};
use crate::chunk::ChunkShape;
use crate::device::{DeviceId, needs_graphs};
use crate::error::PlanError;
use crate::phase::Phase;
use crate::route::Route;

/// Standard sizes where no device has graph sizes of its own: the powers of two from 32 to 1024.
pub(crate) const STANDARD: [usize; 6] = [32, 64, 128, 256, 512, 1024];

/// A sequence cut: the rows of each run of static ops are divided between two devices.
pub(crate) struct RowDivision {
    /// Runs the first rows, in standard sizes: the NPU, or the GPU if there is no NPU.
    pub(crate) main: DeviceId,
    /// Runs the other rows: the GPU, or the CPU if there is no GPU or it is the main device.
    pub(crate) edge: DeviceId,
    /// Runs the ops that cannot be divided.
    pub(crate) other: DeviceId,
    /// Standard sizes of the main device, ascending.
    pub(crate) sizes: Vec<usize>,
}

impl RowDivision {
    /// Finds the devices.
    pub(crate) fn of(strategy: &str, input: &PlanInput<'_>) -> Result<RowDivision, PlanError> {
        let devices = input.devices;
        let fastest = fastest_devices(strategy, input)?;
        let other = Needs { strategy, devices }.helper()?;
        let info = &devices[fastest[0].0];
        let sizes = match needs_graphs(info) {
            true => info.sizes.clone(),
            false => STANDARD.to_vec(),
        };
        Ok(RowDivision { main: fastest[0], edge: fastest[1], other, sizes })
    }

    /// Divides every run of static ops after the rows that `graphs` hold. Returns the division as
    /// text.
    pub(crate) fn divide(&self, stages: &mut RouteBuilder<'_>, graphs: &[usize]) -> String {
        let (graph, rows) = (stages.input.graph, stages.shape.rows);
        let main_rows: usize = graphs.iter().sum();
        let in_graphs = needs_graphs(&stages.input.devices[self.main.0]);
        for (nodes, can) in stages.runs(|node| is_static(graph, node)) {
            if !can {
                stages.on(self.other, nodes);
            } else if main_rows == 0 {
                stages.on(self.edge, nodes);
            } else if main_rows == rows {
                match in_graphs {
                    true => stages.on_npu(self.main, nodes, graphs),
                    false => stages.on(self.main, nodes),
                }
            } else {
                let graphs = if in_graphs { graphs.to_vec() } else { Vec::new() };
                let part = |rows, graphs| Part { rows: Some(rows), graphs, ..Part::WHOLE };
                let main = (self.main, part(0..main_rows, graphs));
                let edge = (self.edge, part(main_rows..rows, Vec::new()));
                stages.divided(nodes, vec![main, edge]);
            }
        }
        let name = |device: DeviceId| &stages.input.devices[device.0].name;
        let (main, edge) = (name(self.main), name(self.edge));
        match (main_rows, rows - main_rows) {
            (0, _) => format!("{rows} rows are below the smallest standard size; all on {edge}"),
            (_, 0) => format!("{rows} = {} on {main}", sizes::sum(graphs)),
            (_, rest) => {
                format!("{rows} = {} on {main} ‖ {rest} on {edge}", sizes::sum(graphs))
            }
        }
    }

    /// A decode route: its few rows are not divided.
    pub(crate) fn decode(
        &self,
        strategy: &str,
        input: &PlanInput<'_>,
        shape: &ChunkShape,
    ) -> Result<Arc<Route>, PlanError> {
        StaticNpu { strategy, input, npu: self.main, helper: self.other }.decode(shape)
    }
}

/// A row cut: the output channels of each block of matmuls are divided between devices.
pub(crate) struct ChannelDivision {
    /// The devices.
    pub(crate) devices: Vec<DeviceId>,
    /// What each of them gets.
    pub(crate) proportion: Proportion,
    /// Runs all other ops.
    pub(crate) other: DeviceId,
    /// Graph sizes of the NPU's part, from its rows and the standard sizes.
    pub(crate) graphs: fn(usize, &[usize]) -> Vec<usize>,
}

impl ChannelDivision {
    /// Divides every block of matmuls with a row for each token. Blocks of selected rows are
    /// divided in decode only, where every row is selected.
    pub(crate) fn divide(&self, stages: &mut RouteBuilder<'_>) {
        let graph = stages.input.graph;
        let decodes = stages.shape.phase == Phase::Decode;
        for block in blocks(graph) {
            let nodes = block.nodes;
            let stays = is_selected(graph, &nodes) && (!decodes || stages.shape.selected == 0);
            if block.kind == BlockKind::Matmul && !stays {
                self.divide_block(stages, nodes);
            } else {
                stages.on(self.other, nodes);
            }
        }
    }

    fn divide_block(&self, stages: &mut RouteBuilder<'_>, nodes: Range<usize>) {
        let rows = stages.rows(&nodes);
        let whole = |device: &DeviceId| {
            let info = &stages.input.devices[device.0];
            let graphs = match needs_graphs(info) {
                true => (self.graphs)(rows, &info.sizes),
                false => Vec::new(),
            };
            (*device, stages.ordered(&nodes, Part { graphs, ..Part::WHOLE }))
        };
        let wholes: Vec<(DeviceId, Part)> = self.devices.iter().map(whole).collect();
        let units = self.proportion.units(stages, &nodes, &wholes);
        let shares = shares(stages.input.graph, &nodes, &units);
        let parts = wholes.into_iter().zip(shares);
        let parts: Vec<(DeviceId, Part)> = parts
            .filter_map(|((device, part), share)| Some((device, Part { features: share?, ..part })))
            .collect();
        match &parts[..] {
            [(device, part)] if part.graphs.is_empty() => stages.on(*device, nodes),
            [(device, part)] => stages.on_npu(*device, nodes, &part.graphs),
            _ => stages.divided(nodes, parts),
        }
    }
}

/// The usable devices, fastest first, at least two: NPU, GPU, CPU.
pub(crate) fn fastest_devices(
    strategy: &str,
    input: &PlanInput<'_>,
) -> Result<Vec<DeviceId>, PlanError> {
    let devices = Roles::of(input.devices).fastest_first();
    match devices.len() {
        0 | 1 => Err(Needs { strategy, devices: input.devices }.two_kinds()),
        _ => Ok(devices),
    }
}

/// A share of the output channels for each lane, in proportion to its units. A lane whose share holds
/// no 32 channels of any value that the nodes write gets `None`.
pub(crate) fn shares(graph: &Graph, nodes: &Range<usize>, units: &[usize]) -> Vec<Option<Share>> {
    let of: usize = units.iter().sum();
    let mut from = 0;
    let mut shares: Vec<Option<Share>> = Vec::new();
    for unit in units {
        let share = Share { from, to: from + unit, of };
        from += unit;
        let mut outputs = graph.nodes()[nodes.clone()].iter().map(|node| node.output);
        let some = outputs.any(|v| !share.of_width(graph.value(v).width).is_empty());
        shares.push(some.then_some(share));
    }
    // The units of a lane without a share go to the lane before it, or to the first lane.
    let mut end = of;
    for share in shares.iter_mut().rev().flatten() {
        share.to = end;
        end = share.from;
    }
    if let Some(first) = shares.iter_mut().flatten().next() {
        first.from = 0;
        if first.is_whole() {
            *first = Share::WHOLE;
        }
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;
    use lapwing_kernels::formats::DType;
    use lapwing_kernels::graph::{NewNode, WeightSpec};
    use lapwing_kernels::op::Op;

    /// Output channels of each lane in a matmul of that width.
    fn divided(width: usize, units: &[usize]) -> Vec<Option<usize>> {
        let mut graph = Graph::default();
        let spec = |rows| WeightSpec { name: "w".into(), rows, cols: 32, dtype: DType::F32 };
        let table = graph.add_weight(spec(4));
        let weight = graph.add_weight(spec(width));
        let node = |op, inputs, width| NewNode { op, inputs, width, layer: None, role: "test" };
        let x = graph.push(node(Op::Embed { table, scale: 1.0 }, &[], 32));
        graph.push(node(Op::MatMul { weight, bias: None }, &[x], width));
        let shares = shares(&graph, &(1..2), units);
        let mut next = 0;
        for share in shares.iter().flatten() {
            assert_eq!(
                (share.from, share.of),
                (next, shares.iter().flatten().next().expect("one").of)
            );
            next = share.to;
        }
        let len = |share: &Option<Share>| share.map(|share| share.of_width(width).len());
        shares.iter().map(len).collect()
    }

    #[test]
    fn a_lane_without_a_share_leaves_its_channels_to_others() {
        assert_eq!(divided(576, &[3, 1]), [Some(448), Some(128)]);
        assert_eq!(divided(14_336, &[6, 2, 1]), [Some(9568), Some(3200), Some(1568)]);
        assert_eq!(divided(64, &[3, 1]), [Some(64), None]);
        assert_eq!(divided(64, &[1, 1, 1]), [Some(32), Some(32), None]);
        assert_eq!(divided(64, &[20, 1, 20]), [Some(32), None, Some(32)]);
        assert_eq!(divided(64, &[31, 2, 31]), [Some(32), Some(32), None]);
        assert_eq!(divided(3, &[1, 100]), [None, Some(3)]);
        assert_eq!(divided(8, &[1, 1, 7]), [None, Some(8), None]);
    }
}
