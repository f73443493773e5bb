//! Cuts that several strategies share.

use std::ops::Range;

use lapwing_kernels::device::DeviceKind;
use lapwing_kernels::graph::Graph;
use lapwing_kernels::part::{Part, Share};

use super::roles::{Needs, Roles};
use super::stages::{Stages, is_selected, is_static, runs};
use super::{PlanInput, sizes};
use crate::Phase;
use crate::blocks::{BlockKind, blocks};
use crate::{DeviceId, PlanError};

/// Row counts for which graphs are customary (S2-47); where no NPU says what it has.
pub(crate) const STANDARD: [usize; 6] = [32, 64, 128, 256, 512, 1024];

/// Tokens divided between two devices, as large static runs as possible.
pub(crate) struct TokenCut {
    /// Takes the first rows, in standard sizes: the NPU; without one, the GPU.
    pub(crate) main: DeviceId,
    /// Takes the other rows: the GPU; without one, or if that is the main device, the CPU.
    pub(crate) edge: DeviceId,
    /// Runs what cannot be divided.
    pub(crate) other: DeviceId,
    /// Row counts to cut at.
    pub(crate) sizes: Vec<usize>,
}

impl TokenCut {
    /// Finds two devices.
    pub(crate) fn of(strategy: &str, input: &PlanInput<'_>) -> Result<TokenCut, PlanError> {
        let devices = input.devices;
        let lanes = two_lanes(strategy, input)?;
        let other = Needs { strategy, devices }.helper()?;
        let info = &devices[lanes[0].0];
        let sizes = match info.kind {
            DeviceKind::Npu => info.sizes.clone(),
            _ => STANDARD.to_vec(),
        };
        Ok(TokenCut { main: lanes[0], edge: lanes[1], other, sizes })
    }

    /// Cuts every static run after the rows that the graphs hold. Returns the cut as text.
    pub(crate) fn cut(&self, stages: &mut Stages<'_>, graphs: &[usize]) -> String {
        let (graph, rows) = (stages.input.graph, stages.shape.rows);
        let main_rows: usize = graphs.iter().sum();
        let is_npu = stages.input.devices[self.main.0].kind == DeviceKind::Npu;
        for (nodes, can) in runs(stages.nodes(), |node| is_static(graph, node)) {
            if !can {
                stages.on(self.other, nodes);
            } else if main_rows == 0 {
                stages.on(self.edge, nodes);
            } else if main_rows == rows {
                match is_npu {
                    true => stages.on_npu(self.main, nodes, graphs),
                    false => stages.on(self.main, nodes),
                }
            } else {
                let graphs = if is_npu { graphs.to_vec() } else { Vec::new() };
                let part = |rows, graphs| Part { rows: Some(rows), graphs, ..Part::WHOLE };
                let main = (self.main, part(0..main_rows, graphs));
                let edge = (self.edge, part(main_rows..rows, Vec::new()));
                stages.cut(nodes, vec![main, edge]);
            }
        }
        let name = |device: DeviceId| &stages.input.devices[device.0].name;
        let (main, edge) = (name(self.main), name(self.edge));
        match (main_rows, rows - main_rows) {
            (0, _) => format!("{rows} rows are fewer than any standard size, all on {edge}"),
            (_, 0) => format!("{rows} = {} on {main}", sizes::sum(graphs)),
            (_, rest) => {
                format!("{rows} = {} on {main} ‖ {rest} on {edge}", sizes::sum(graphs))
            }
        }
    }
}

/// Features of products divided between devices.
pub(crate) struct FeatureCut {
    /// Devices and their units.
    pub(crate) lanes: Vec<(DeviceId, usize)>,
    /// Runs everything else.
    pub(crate) other: DeviceId,
    /// How the NPU holds its rows.
    pub(crate) graphs: fn(usize, &[usize]) -> Vec<usize>,
}

impl FeatureCut {
    /// Cuts every product that has rows; those of selected rows in decode only, where there is
    /// one for each row.
    pub(crate) fn cut(&self, stages: &mut Stages<'_>) {
        let graph = stages.input.graph;
        let decodes = stages.shape.phase == Phase::Decode;
        for block in blocks(graph) {
            let nodes = block.nodes;
            let stays = is_selected(graph, &nodes) && (!decodes || stages.shape.selected == 0);
            if block.kind == BlockKind::Product && !stays {
                self.cut_block(stages, nodes);
            } else {
                stages.on(self.other, nodes);
            }
        }
    }

    fn cut_block(&self, stages: &mut Stages<'_>, nodes: Range<usize>) {
        let rows = stages.rows(&nodes);
        let units: Vec<usize> = self.lanes.iter().map(|(_, units)| *units).collect();
        let mut parts = Vec::new();
        for ((device, _), share) in
            self.lanes.iter().zip(shares(stages.input.graph, &nodes, &units))
        {
            let Some(features) = share else { continue };
            let info = &stages.input.devices[device.0];
            let graphs = match info.kind {
                DeviceKind::Npu => (self.graphs)(rows, &info.sizes),
                _ => Vec::new(),
            };
            parts.push((*device, Part { features, graphs, ..Part::WHOLE }));
        }
        match &parts[..] {
            [(device, part)] if part.graphs.is_empty() => stages.on(*device, nodes),
            [(device, part)] => stages.on_npu(*device, nodes, &part.graphs),
            _ => stages.cut(nodes, parts),
        }
    }
}

/// The two fastest devices that there are: NPU ‖ GPU, NPU ‖ CPU or GPU ‖ CPU.
pub(crate) fn two_lanes(strategy: &str, input: &PlanInput<'_>) -> Result<Vec<DeviceId>, PlanError> {
    let roles = Roles::of(input.devices);
    let lanes = roles.fastest_first();
    if lanes.len() < 2 {
        let needs = Needs { strategy, devices: input.devices };
        needs.npu()?;
        needs.helper()?;
    }
    Ok(lanes)
}

/// A share of the features for each lane, by units. A lane too small for 32 features of any value
/// that the nodes write gets none.
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
    // The units of lanes without features count to the lane before them, or to the first.
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
    use lapwing_kernels::graph::{NewNode, WeightSpec};
    use lapwing_kernels::op::Op;
    use lapwing_kernels::quant::DType;

    /// Features of each lane in a product of that width.
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
    fn lanes_without_features_get_no_part_and_lose_none() {
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
