//! A stage: consecutive nodes that run together.

use std::ops::Range;

use lapwing_kernels::device::{GraphKey, Prepare};
use lapwing_kernels::part::Part;

use crate::device::DeviceId;

/// Consecutive nodes that run on one device, or are divided between several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stage {
    /// Nodes of the graph.
    pub nodes: Range<usize>,
    /// Parts, at most one per device. Together they tile the values that the stage writes.
    pub parts: Vec<StagePart>,
    /// When static graphs are prepared.
    pub prepare: Prepare,
}

/// A device's part of a stage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StagePart {
    /// Device that runs the part.
    pub device: DeviceId,
    /// Rows and output channels of the part.
    pub part: Part,
}

impl Stage {
    /// All rows and output channels of the nodes, on one device that takes any number of rows.
    pub fn whole(device: DeviceId, nodes: Range<usize>) -> Stage {
        Stage::one(device, nodes, Part::WHOLE)
    }

    /// An undivided stage on one device; `part` names its graphs and operand order.
    pub fn one(device: DeviceId, nodes: Range<usize>, part: Part) -> Stage {
        Stage { nodes, parts: vec![StagePart { device, part }], prepare: Prepare::Ahead }
    }

    /// The device of an undivided stage; `None` if the stage is divided.
    pub fn only_device(&self) -> Option<DeviceId> {
        match &self.parts[..] {
            [one] => Some(one.device),
            _ => None,
        }
    }

    /// The static graphs that a part of this stage runs, each once, by ascending rows.
    pub fn graphs<'a>(&'a self, part: &'a Part) -> impl Iterator<Item = GraphKey> + 'a {
        let mut sizes = part.graphs.clone();
        sizes.sort_unstable();
        sizes.dedup();
        sizes.into_iter().map(|rows| GraphKey {
            nodes: self.nodes.clone(),
            features: part.features,
            rows,
            order: part.order,
        })
    }
}
