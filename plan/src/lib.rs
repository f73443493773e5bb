//! Plans: which device runs which part of the graph.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use lapwing_kernels::device::{DeviceInfo, DeviceKind, GraphKey, MemoryDomain, ModelId, Prepare};
use lapwing_kernels::graph::{Graph, ValueId};
use lapwing_kernels::part::Part;

pub mod array;
pub mod attention_flops;
pub mod blocks;
mod complete;
pub mod cost;
mod error;
pub mod fit;
mod phase;
pub mod place;
pub mod planner;
pub mod predict;
pub mod profile;
pub mod rate;
pub mod shape;
#[cfg(feature = "soc")]
pub mod soc;
pub mod solve;
pub mod strategy;
pub mod time;
pub mod tree;
mod validate;

pub use error::PlanError;
pub use phase::Phase;

/// Number of a device in the engine, also of its worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DeviceId(pub usize);

/// What a stage does.
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
    /// Samples, scores or verifies on the host: logits become tokens. The last stage of a route.
    Decide {
        /// The logits.
        logits: ValueId,
    },
}

/// A run of ops between two borders, on one device or divided between several; or a transfer, or the
/// choice of tokens, which [`Route::new`] adds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stage {
    /// What it does.
    pub work: StageWork,
    /// Nodes of the graph; none in a stage that computes no nodes.
    pub nodes: Range<usize>,
    /// Who computes what; together they tile the stage's values, each device at most once.
    pub parts: Vec<StagePart>,
    /// When static graphs are prepared.
    pub prepare: Prepare,
}

/// A device's part of a stage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StagePart {
    /// Device that runs it.
    pub device: DeviceId,
    /// Which of the rows and features.
    pub part: Part,
}

impl Stage {
    /// All of the nodes on one device that takes any number of rows.
    pub fn whole(device: DeviceId, nodes: Range<usize>) -> Stage {
        Stage::one(device, nodes, Part::WHOLE)
    }

    /// All of the nodes on one device.
    pub fn one(device: DeviceId, nodes: Range<usize>, part: Part) -> Stage {
        let parts = vec![StagePart { device, part }];
        Stage { work: StageWork::Nodes, nodes, parts, prepare: Prepare::Ahead }
    }

    /// The device, if it is one only.
    pub fn only_device(&self) -> Option<DeviceId> {
        match &self.parts[..] {
            [one] => Some(one.device),
            _ => None,
        }
    }

    /// Whether it computes nodes.
    pub fn computes(&self) -> bool {
        self.work == StageWork::Nodes
    }

    /// Whether it chooses tokens.
    pub fn decides(&self) -> bool {
        matches!(self.work, StageWork::Decide { .. })
    }

    /// Graphs that a part needs.
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

/// All stages of a chunk, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Route {
    /// The model that it is for.
    pub model: ModelId,
    /// Stages. Those that compute cover every node once, in order; transfers stand between them, and
    /// the choice of tokens is last.
    pub stages: Vec<Stage>,
    /// What each stage hands on.
    pub flows: Vec<Flow>,
    /// Graphs that must be ready before a chunk takes this route.
    pub graphs: Vec<(DeviceId, GraphKey)>,
    /// Predicted time of a chunk that is alone, if there is a cost model for it.
    pub predicted: Option<Duration>,
    /// Why this route was chosen, for the placement report.
    pub reason: String,
}

/// What a stage hands on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Flow {
    /// Values that it writes for later stages.
    pub writes: Arc<[ValueId]>,
    /// All values that later stages need: those, and what passes through.
    pub live_out: Arc<[ValueId]>,
}

/// What a route is made for.
#[derive(Clone, Copy, Debug)]
pub struct RouteFor<'a> {
    /// The model.
    pub model: ModelId,
    /// The model's ops.
    pub graph: &'a Graph,
    /// The engine's devices, by their number.
    pub devices: &'a [DeviceInfo],
    /// Rows of the chunk.
    pub rows: usize,
    /// Rows whose logits are wanted.
    pub selected: usize,
}

impl Route {
    /// A route, checked against what it is made for.
    ///
    /// # Errors
    /// [`PlanError`] when the stages leave out, repeat or reorder nodes, when the parts of a stage
    /// do not tile it, or when a device is not there or cannot run what it is given.
    pub fn new(
        stages: Vec<Stage>,
        reason: String,
        predicted: Option<Duration>,
        of: RouteFor<'_>,
    ) -> Result<Arc<Route>, PlanError> {
        validate::stages(&stages, of)?;
        let (stages, flows) = complete::complete(stages, of)?;
        let mut graphs = Vec::new();
        for stage in stages.iter().filter(|s| s.prepare == Prepare::Ahead) {
            for StagePart { device, part } in &stage.parts {
                graphs.extend(stage.graphs(of.model, part).map(|key| (*device, key)));
            }
        }
        validate::budgets(&graphs, of)?;
        Ok(Arc::new(Route { model: of.model, stages, flows, graphs, predicted, reason }))
    }

    /// Checks that a chunk of that kind can take it.
    ///
    /// # Errors
    /// As [`Route::new`].
    pub fn check(&self, of: RouteFor<'_>) -> Result<(), PlanError> {
        validate::route(&self.stages, of)?;
        validate::budgets(&self.graphs, of)?;
        if self.model != of.model {
            return Err(PlanError::OtherModel { found: self.model.0, expected: of.model.0 });
        }
        if self.flows.len() != self.stages.len() {
            let (found, expected) = (0..self.flows.len(), self.stages.len());
            return Err(PlanError::Coverage { found, expected });
        }
        Ok(())
    }

    /// The stages that compute nodes, as the strategy made them.
    pub fn compute_stages(&self) -> impl Iterator<Item = &Stage> {
        self.stages.iter().filter(|stage| stage.computes())
    }

    /// Whether any stage is divided between devices.
    pub fn is_cut(&self) -> bool {
        self.stages.iter().any(|stage| stage.parts.len() > 1)
    }
}

/// The first device of a kind.
pub fn device_of(devices: &[DeviceInfo], kind: DeviceKind) -> Option<DeviceId> {
    devices.iter().position(|device| device.kind == kind).map(DeviceId)
}
