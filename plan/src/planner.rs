//! The planner: routes by shape, computed once.

use std::collections::HashMap;
use std::sync::Arc;

use lapwing_kernels::device::{DeviceInfo, ModelId};
use lapwing_kernels::graph::Graph;

use super::cost::CostModel;
use super::strategy::{ChunkShape, PlanInput, PromptRows, Strategy};
use super::{DeviceId, PlanError, Route};

/// What a planner is made of.
#[derive(Clone)]
pub struct PlannerParts {
    /// The model.
    pub model: ModelId,
    /// Ops of the model.
    pub graph: Arc<Graph>,
    /// The engine's devices, by their number.
    pub devices: Vec<DeviceInfo>,
    /// Predicted times.
    pub cost: Arc<dyn CostModel>,
    /// Makes the routes.
    pub strategy: Arc<dyn Strategy>,
    /// Most prompt rows in a chunk.
    pub chunk_rows: usize,
}

impl PlannerParts {
    /// What the strategy may look at.
    pub fn input(&self) -> PlanInput<'_> {
        let PlannerParts { model, graph, devices, cost, chunk_rows, .. } = self;
        PlanInput { model: *model, graph, devices, cost: &**cost, chunk_rows: *chunk_rows }
    }
}

/// Makes routes, and keeps them.
pub struct Planner {
    parts: PlannerParts,
    routes: HashMap<ChunkShape, Arc<Route>>,
    /// Stages of all routes kept.
    stages: usize,
}

/// Most stages of all routes kept, at some 400 bytes each: the shapes of a long conversation.
const STAGES_MAX: usize = 100_000;

impl Planner {
    /// A planner without routes yet.
    pub fn new(parts: PlannerParts) -> Planner {
        Planner { parts, routes: HashMap::new(), stages: 0 }
    }

    /// Name of the strategy.
    pub fn strategy(&self) -> &str {
        self.parts.strategy.name()
    }

    /// The model that it plans for.
    pub fn model(&self) -> ModelId {
        self.parts.model
    }

    /// Ops of the model.
    pub fn graph(&self) -> &Arc<Graph> {
        &self.parts.graph
    }

    /// Name of a device.
    pub fn device(&self, id: DeviceId) -> &str {
        self.parts.devices.get(id.0).map_or("", |device| &device.name)
    }

    /// Rows of the next chunk of a prompt.
    pub fn chunk_rows(&self, prompt: PromptRows) -> usize {
        let most = prompt.due.min(self.parts.chunk_rows);
        self.parts.strategy.chunk_rows(&self.parts.input(), prompt).clamp(most.min(1), most)
    }

    /// The route of a chunk. Contexts count in powers of two: a route is as good a little further
    /// on.
    ///
    /// # Errors
    /// [`PlanError`] when the strategy finds no route.
    pub fn route(&mut self, shape: ChunkShape) -> Result<Arc<Route>, PlanError> {
        let shape = shape.asked();
        if let Some(route) = self.routes.get(&shape) {
            return Ok(Arc::clone(route));
        }
        let input = self.parts.input();
        let route = self.parts.strategy.route(&input, &shape)?;
        // Whatever a strategy of a user hands out, the actors must be able to follow.
        route.check(input.route_for(&shape))?;
        if self.stages + route.stages.len() > STAGES_MAX {
            self.routes.clear();
            self.stages = 0;
        }
        self.stages += route.stages.len();
        self.routes.insert(shape, Arc::clone(&route));
        Ok(route)
    }
}
