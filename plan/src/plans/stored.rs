//! Routes as data.

use std::sync::Arc;
use std::time::Duration;

use lapwing_kernels::device::Prepare;
use lapwing_kernels::part::{OperandOrder, Part, Share};
use serde::{Deserialize, Serialize};

use crate::chunk::ChunkShape;
use crate::device::DeviceId;
use crate::error::PlanError;
use crate::phase::Phase;
use crate::route::Route;
use crate::rule::Rule;
use crate::stage::{Stage, StagePart, StageWork};
use crate::strategy::PlanInput;

/// A route as it is stored. Reading it computes the rest of a [`Route`] from its stages again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StoredRoute {
    phase: String,
    rows: usize,
    selected: usize,
    context: usize,
    prompt: usize,
    reason: String,
    predicted_ns: Option<u64>,
    #[serde(default)]
    rule: Rule,
    stages: Vec<StoredStage>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct StoredStage {
    nodes: (usize, usize),
    on_the_spot: bool,
    parts: Vec<StoredPart>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct StoredPart {
    device: usize,
    rows: Option<(usize, usize)>,
    /// First and last unit, and units of the whole width.
    features: (usize, usize, usize),
    /// First expert and one past the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    experts: Option<(usize, usize)>,
    graphs: Vec<usize>,
    swapped: bool,
}

impl StoredRoute {
    /// A route for chunks of this shape.
    pub(super) fn new(route: &Route, shape: &ChunkShape) -> StoredRoute {
        let ChunkShape { phase, rows, selected, context, prompt } = *shape;
        let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        StoredRoute {
            phase: phase.name().to_owned(),
            rows,
            selected,
            context,
            prompt,
            reason: route.reason.clone(),
            predicted_ns: route.predicted.map(nanos),
            rule: route.rule,
            stages: route.compute_stages().map(StoredStage::new).collect(),
        }
    }

    /// The route.
    ///
    /// # Errors
    /// [`PlanError`] if the graph or the devices cannot run it.
    pub(super) fn route(
        &self,
        input: &PlanInput<'_>,
        shape: &ChunkShape,
    ) -> Result<Arc<Route>, PlanError> {
        let stages = self.stages.iter().map(StoredStage::stage).collect();
        let predicted = self.predicted_ns.map(Duration::from_nanos);
        let route = Route::new(stages, self.reason.clone(), predicted, input.route_for(shape))?;
        Ok(Arc::new(Route { rule: self.rule, ..Route::clone(&route) }))
    }

    /// The shape of its chunks; `None` if no phase has its name.
    pub(super) fn shape(&self) -> Option<ChunkShape> {
        let StoredRoute { rows, selected, context, prompt, .. } = *self;
        let phase = Phase::ALL.into_iter().find(|phase| phase.name() == self.phase)?;
        Some(ChunkShape { phase, rows, selected, context, prompt })
    }

    /// Whether it is for chunks of this shape.
    pub(super) fn is_of(&self, shape: &ChunkShape) -> bool {
        let StoredRoute { rows, selected, context, prompt, .. } = *self;
        self.phase == shape.phase.name()
            && (rows, selected) == (shape.rows, shape.selected)
            && (context, prompt) == (shape.context, shape.prompt)
    }
}

impl StoredStage {
    fn new(stage: &Stage) -> StoredStage {
        let part = |StagePart { device, part }: &StagePart| StoredPart {
            device: device.0,
            rows: part.rows.as_ref().map(|rows| (rows.start, rows.end)),
            features: (part.features.from, part.features.to, part.features.of),
            experts: part.experts.as_ref().map(|experts| (experts.start, experts.end)),
            graphs: part.graphs.clone(),
            swapped: part.order == OperandOrder::Swapped,
        };
        StoredStage {
            nodes: (stage.nodes.start, stage.nodes.end),
            on_the_spot: stage.prepare == Prepare::OnTheSpot,
            parts: stage.parts.iter().map(part).collect(),
        }
    }

    fn stage(&self) -> Stage {
        let part = |stored: &StoredPart| {
            let (from, to, of) = stored.features;
            let order = if stored.swapped { OperandOrder::Swapped } else { OperandOrder::Straight };
            let part = Part {
                rows: stored.rows.map(|(from, to)| from..to),
                features: Share { from, to, of },
                experts: stored.experts.map(|(from, to)| from..to),
                graphs: stored.graphs.clone(),
                order,
            };
            StagePart { device: DeviceId(stored.device), part }
        };
        Stage {
            work: StageWork::Nodes,
            nodes: self.nodes.0..self.nodes.1,
            parts: self.parts.iter().map(part).collect(),
            prepare: if self.on_the_spot { Prepare::OnTheSpot } else { Prepare::Ahead },
        }
    }
}
