//! A route: the stages that a chunk passes.

use std::sync::Arc;
use std::time::Duration;

use lapwing_kernels::device::{GraphKey, ModelId, Prepare};
use lapwing_kernels::graph::ValueId;

use crate::complete::complete;
use crate::device::DeviceId;
use crate::error::PlanError;
use crate::rule::Rule;
use crate::stage::{Stage, StagePart};
use crate::time::Border;
use crate::validate::{self, RouteFor};

/// All stages of a chunk, in order. Each chunk carries its complete route, so no actor has to look
/// up where to send it next.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Route {
    /// The model that it is for.
    pub model: ModelId,
    /// Stages. Those that compute cover every node once, in order; transfers stand between them, and
    /// sampling is last.
    pub stages: Vec<Stage>,
    /// Values that each stage passes to later stages.
    pub flows: Vec<Flow>,
    /// Graphs that must be prepared before a chunk takes this route.
    pub graphs: Vec<(DeviceId, GraphKey)>,
    /// Predicted time of a chunk that runs alone; `None` without a cost model.
    pub predicted: Option<Duration>,
    /// Why the strategy chose this route, in one line for the placement report.
    pub reason: String,
    /// Whether it takes the place of a route whose graphs are not ready.
    pub is_meanwhile: bool,
    /// By what a chunk chooses among this and other routes, if this is the one of a chunk alone.
    pub rule: Rule,
}

/// Values that a stage passes to later stages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Flow {
    /// Values that the stage writes and later stages read.
    pub writes: Arc<[ValueId]>,
    /// All values that later stages read: `writes`, and values of earlier stages.
    pub live_out: Arc<[ValueId]>,
    /// Of each part of the stage, the values that it reads and its device lacks: those that another device or several computed, and
    /// that no stage of the part's device has read since. None of a stage that computes no nodes.
    pub arrivals: Arc<[usize]>,
}

impl Route {
    /// A route of these compute stages, with the transfers between memories and sampling
    /// added, checked against the graph, the devices and the rows of the chunk.
    ///
    /// # Errors
    /// [`PlanError`] if the stages leave out, repeat or reorder nodes, if the parts of a stage do
    /// not tile it, if a device does not exist or cannot run its part, or if the graphs of a device
    /// exceed its budget, if weights, keys and values do not fit into a device's own memory, or if the logits end in a device's memory and no device works in host memory.
    pub fn new(
        stages: Vec<Stage>,
        reason: String,
        predicted: Option<Duration>,
        of: RouteFor<'_>,
    ) -> Result<Arc<Route>, PlanError> {
        validate::stages(&stages, of)?;
        validate::rooms(&stages, of)?;
        let (stages, flows) = complete(stages, of);
        let mut graphs = Vec::new();
        for stage in stages.iter().filter(|s| s.prepare == Prepare::Ahead) {
            for StagePart { device, part } in &stage.parts {
                graphs.extend(stage.graphs(of.model, part).map(|key| (*device, key)));
            }
        }
        validate::budgets(&graphs, of)?;
        let (model, is_meanwhile) = (of.model, false);
        let rule = Rule::default();
        Ok(Arc::new(Route { model, stages, flows, graphs, predicted, reason, is_meanwhile, rule }))
    }

    /// Checks that a chunk of the given rows can take the route.
    ///
    /// # Errors
    /// As [`Route::new`].
    pub fn check(&self, of: RouteFor<'_>) -> Result<(), PlanError> {
        validate::route(&self.stages, of)?;
        validate::rooms(&self.stages, of)?;
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

    /// What passes between devices before a stage, as a part on this device finds it.
    ///
    /// # Panics
    /// If there is no such stage.
    pub fn border(&self, stage: usize, device: DeviceId) -> Border {
        let before = stage.checked_sub(1).map(|before| &self.stages[before].parts[..]);
        let is_shared =
            |parts: &[StagePart]| parts.len() > 1 && parts.iter().any(|part| part.device == device);
        let buffers = self.flows[stage].arrivals.iter().sum();
        Border { buffers, shared: before.is_some_and(is_shared) }
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
