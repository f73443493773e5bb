//! A stage: consecutive nodes that run together.

use std::ops::Range;
use std::sync::Arc;

use lapwing_kernels::device::{GraphKey, MemoryDomain, ModelId, NodeOnDevice, Prepare};
use lapwing_kernels::graph::ValueId;
use lapwing_kernels::part::Part;

use crate::device::DeviceId;

/// The work of a stage.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum StageWork {
    /// Computes the stage's nodes.
    #[default]
    Nodes,
    /// Copies values between host memory and the memory of the stage's device.
    Transfer {
        /// The values.
        values: Arc<[ValueId]>,
        /// Where they are afterwards.
        to: MemoryDomain,
    },
    /// Samples or scores on the host: logits become tokens. Hidden states are passed on as they are.
    /// The last stage of a route.
    Decide {
        /// The graph's output: logits, or hidden states if the route ends there.
        logits: ValueId,
        /// The hidden states that are passed on to another model, if the graph passes some on.
        passed_on: Option<ValueId>,
    },
}

/// Consecutive nodes that run on one device, or are divided between several; or a transfer or
/// sampling, both of which [`Route::new`](crate::Route::new) adds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stage {
    /// The work of the stage.
    pub work: StageWork,
    /// Nodes of the graph; empty if the stage computes no nodes.
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
        let parts = vec![StagePart { device, part }];
        Stage { work: StageWork::Nodes, nodes, parts, prepare: Prepare::Ahead }
    }

    /// The device of an undivided stage; `None` if the stage is divided.
    pub fn only_device(&self) -> Option<DeviceId> {
        match &self.parts[..] {
            [one] => Some(one.device),
            _ => None,
        }
    }

    /// What a device computes of it.
    pub fn on_device(&self, device: DeviceId) -> impl Iterator<Item = NodeOnDevice> + '_ {
        let parts = self.parts.iter().filter(move |part| part.device == device);
        parts.flat_map(|StagePart { part, .. }| {
            let experts = || part.experts.clone();
            self.nodes.clone().map(move |node| NodeOnDevice { node, experts: experts() })
        })
    }

    /// Whether it computes nodes.
    pub fn computes(&self) -> bool {
        self.work == StageWork::Nodes
    }

    /// Whether it chooses tokens.
    pub fn decides(&self) -> bool {
        matches!(self.work, StageWork::Decide { .. })
    }

    /// The static graphs that a part of this stage runs, each once, by ascending rows.
    pub fn graphs<'a>(
        &'a self,
        model: ModelId,
        part: &'a Part,
    ) -> impl Iterator<Item = GraphKey> + 'a {
        let mut sizes = part.graphs.clone();
        sizes.sort_unstable();
        sizes.dedup();
        sizes.into_iter().map(move |rows| GraphKey {
            model,
            nodes: self.nodes.clone(),
            features: part.features,
            rows,
            order: part.order,
        })
    }
}
