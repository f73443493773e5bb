//! What a device is sent of a chunk: a stage, or its part of one.

use std::sync::Arc;

use lapwing_kernels::device::{DeviceError, MemoryDomain, Task, TensorSet, Work};
use lapwing_plan::{DeviceId, StagePart, StageWork};

use super::Chunk;
use crate::join::JoinPart;
use crate::traced::Traced;

/// A device's part of a chunk's stage. All parts share the chunk; the last part to finish forwards
/// it.
pub type Part = JoinPart<Box<Chunk>, PartDone>;

/// The result of a part: its rows and output channels of the values that the stage writes.
pub type PartDone = Traced<Result<TensorSet, PartLost>>;

/// A message to a worker: a chunk whose present stage it runs, or its part of that stage.
#[derive(Debug)]
pub enum Delivery {
    /// A whole stage.
    Chunk(Box<Chunk>),
    /// A part of a stage.
    Part(Box<Part>),
}

/// Why a part has no result.
#[derive(Clone, Debug, PartialEq)]
pub enum PartLost {
    /// Its device failed.
    Failed {
        /// Device name.
        device: String,
        /// Its error.
        error: DeviceError,
    },
    /// The result was no longer needed.
    Abandoned,
}

impl Delivery {
    /// The chunk.
    pub fn chunk(&self) -> &Chunk {
        match self {
            Delivery::Chunk(chunk) => chunk,
            Delivery::Part(part) => part.whole(),
        }
    }

    /// The device of the part, with its rows and output channels.
    pub fn part(&self) -> &StagePart {
        &self.chunk().stage().parts[self.part_index()]
    }

    /// Number of the part in its stage.
    pub fn part_index(&self) -> usize {
        match self {
            Delivery::Chunk(_) => 0,
            Delivery::Part(part) => part.index(),
        }
    }

    /// The device that runs it.
    pub fn device(&self) -> DeviceId {
        self.part().device
    }

    /// The work of its device, with results in `memory`, or in host memory if parts are merged.
    /// `None` for sampling, which runs on the host.
    pub fn work(&self, memory: MemoryDomain) -> Option<Work> {
        let chunk = self.chunk();
        let stage = chunk.stage();
        let task = match &stage.work {
            StageWork::Nodes => Task::Nodes {
                nodes: stage.nodes.clone(),
                prepare: stage.prepare,
                writes: Arc::clone(&chunk.flow().writes),
                to: match self {
                    Delivery::Chunk(_) => memory,
                    Delivery::Part(_) => MemoryDomain::Host,
                },
            },
            StageWork::Transfer { values, to } => {
                Task::Transfer { values: Arc::clone(values), to: *to }
            }
            StageWork::Decide { .. } => return None,
        };
        let (part, payload) = (self.part().part.clone(), Arc::clone(&chunk.payload));
        Some(Work { task, part, payload })
    }

    /// Whether its inputs come from another device, or from several.
    pub fn crossed(&self) -> bool {
        let chunk = self.chunk();
        let before = chunk.cursor.checked_sub(1).map(|at| &chunk.route.stages[at]);
        before.is_some_and(|stage| stage.only_device() != Some(self.device()))
    }

    /// Whether it is the part that counts as the stage's hand-off between devices: the first part of
    /// a stage whose inputs come from other devices. Each hand-off is counted once.
    pub fn is_hand_off(&self) -> bool {
        let chunk = self.chunk();
        let Some(at) = chunk.cursor.checked_sub(1) else { return false };
        let from = chunk.route.stages[at].only_device();
        let mut parts = chunk.stage().parts.iter();
        parts.find(|part| from != Some(part.device)).is_some_and(|p| p.device == self.device())
    }
}
