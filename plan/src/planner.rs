//! The planner: computes the route of a chunk shape once, and caches it.

use std::collections::HashMap;
use std::sync::Arc;

use lapwing_kernels::device::{Batch, DeviceInfo, ModelId};
use lapwing_kernels::graph::Graph;

use crate::chunk::{ChunkShape, PromptRows};
use crate::cost::CostModel;
use crate::device::DeviceId;
use crate::error::PlanError;
use crate::moment::{Candidate, Known};
use crate::needs::{NeedShape, Needs};
use crate::predict::alone;
use crate::route::Route;
use crate::strategy::interface::{PlanInput, Strategy};

/// Parts of a planner.
#[derive(Clone)]
pub struct PlannerParts {
    /// The model.
    pub model: ModelId,
    /// Ops of the model.
    pub graph: Arc<Graph>,
    /// The engine's devices, indexed by [`DeviceId`].
    pub devices: Vec<DeviceInfo>,
    /// Predicts times for the strategy.
    pub cost: Arc<dyn CostModel>,
    /// Computes the routes.
    pub strategy: Arc<dyn Strategy>,
    /// Maximum prompt rows of a chunk.
    pub chunk_rows: usize,
}

impl PlannerParts {
    /// The input of the strategy.
    pub fn input(&self) -> PlanInput<'_> {
        let PlannerParts { model, graph, devices, cost, chunk_rows, .. } = self;
        PlanInput { model: *model, graph, devices, cost: &**cost, chunk_rows: *chunk_rows }
    }
}

/// Computes routes and caches them by chunk shape.
pub struct Planner {
    parts: PlannerParts,
    routes: Known,
    /// Total stages of all cached routes.
    stages: usize,
    /// Predicted times of cached routes, in ns.
    times: HashMap<ChunkShape, f64>,
    needs: HashMap<NeedShape, Arc<Needs>>,
    /// Plans chunks whose graphs are not ready.
    meanwhile: Option<Box<Planner>>,
}

/// Maximum total stages of all cached routes, at about 400 bytes each. Enough for the chunk shapes
/// of a long conversation.
const STAGES_MAX: usize = 100_000;

/// Most shapes of which needs are kept.
const NEEDS_MAX: usize = 1000;

/// Below this context, times are interpolated from no context.
const CONTEXT_MIN: usize = 256;

impl Planner {
    /// A planner with an empty cache.
    pub fn new(parts: PlannerParts) -> Planner {
        let (routes, times, needs) = (Known::default(), HashMap::new(), HashMap::new());
        Planner { parts, routes, stages: 0, times, needs, meanwhile: None }
    }

    /// With a strategy for chunks whose graphs are not ready. It must use none that are prepared ahead. Without such a
    /// strategy, these chunks wait.
    #[must_use]
    pub fn with_meanwhile(mut self, strategy: Arc<dyn Strategy>) -> Planner {
        let parts = PlannerParts { strategy, ..self.parts.clone() };
        self.meanwhile = Some(Box::new(Planner::new(parts)));
        self
    }

    /// Plans chunks whose graphs are not ready; `None` if they wait.
    pub fn meanwhile(&self) -> Option<&Planner> {
        self.meanwhile.as_deref()
    }

    /// As [`meanwhile`](Planner::meanwhile), to compute routes.
    pub fn meanwhile_mut(&mut self) -> Option<&mut Planner> {
        self.meanwhile.as_deref_mut()
    }

    /// A planner for the hidden states of the same model ([`Graph::hidden`]), with a cache of its own.
    #[must_use]
    pub fn hidden(&self) -> Planner {
        let graph = Arc::new(self.parts.graph.hidden());
        let meanwhile = self.meanwhile.as_ref().map(|planner| Box::new(planner.hidden()));
        Planner { meanwhile, ..Planner::new(PlannerParts { graph, ..self.parts.clone() }) }
    }

    /// The input of the strategy.
    pub fn input(&self) -> PlanInput<'_> {
        self.parts.input()
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

    /// Number of devices.
    pub fn devices(&self) -> usize {
        self.parts.devices.len()
    }

    /// Name of a device.
    pub fn device(&self, id: DeviceId) -> &str {
        self.parts.devices.get(id.0).map_or("", |device| &device.name)
    }

    /// Most prompt rows of a chunk.
    pub fn chunk_rows_max(&self) -> usize {
        self.parts.chunk_rows
    }

    /// Rows of the next chunk of a prompt, as the strategy decides.
    pub fn chunk_rows(&self, prompt: PromptRows) -> usize {
        let most = prompt.remaining.min(self.parts.chunk_rows);
        self.parts.strategy.chunk_rows(&self.parts.input(), prompt).clamp(most.min(1), most)
    }

    /// The route of a chunk alone. The context is rounded up to a power of two, so that one route serves
    /// many contexts.
    ///
    /// # Errors
    /// [`PlanError`] if the strategy finds no route, or one that cannot run.
    pub fn route(&mut self, shape: ChunkShape) -> Result<Arc<Route>, PlanError> {
        Ok(Arc::clone(&self.candidates(shape)?[0].route))
    }

    /// The routes that a chunk may take: first the one for a chunk alone, and others that may end earlier where devices are busy.
    ///
    /// # Errors
    /// As [`route`](Planner::route).
    pub fn candidates(&mut self, shape: ChunkShape) -> Result<Arc<[Candidate]>, PlanError> {
        let Planner { parts, routes, stages, times, .. } = self;
        let input = parts.input();
        let full = *stages;
        let candidates = routes.of(&input, &shape, |shape| {
            let planned = parts.strategy.routes(&input, shape)?;
            // A user's strategy may return a route that the actors cannot run.
            planned.iter().try_for_each(|route| route.check(input.route_for(shape)))?;
            let candidates = Candidate::of_routes(&input, shape, planned);
            if candidates.is_empty() {
                return Err(PlanError::Coverage {
                    found: 0..0,
                    expected: input.graph.nodes().len(),
                });
            }
            *stages += candidates.iter().map(|it| it.route.stages.len()).sum::<usize>();
            Ok(candidates)
        })?;
        if *stages > STAGES_MAX && full > 0 {
            routes.clear();
            times.clear();
            *stages = 0;
        }
        Ok(candidates)
    }

    /// Predicted time of a chunk alone, in ns. Between two contexts for which routes are planned it is interpolated. `None`
    /// if the strategy has no route.
    pub fn time(&mut self, shape: ChunkShape) -> Option<f64> {
        let above = shape.context.next_power_of_two().max(CONTEXT_MIN);
        let below = if above == CONTEXT_MIN { 0 } else { above / 2 };
        let after = self.time_planned(ChunkShape { context: above, ..shape })?;
        if shape.context == above {
            return Some(after);
        }
        let before = self.time_planned(ChunkShape { context: below, ..shape })?;
        let share = (shape.context - below) as f64 / (above - below) as f64;
        Some(before + share * (after - before))
    }

    /// What a batch needs of each device, on any route; `None` with one device.
    pub fn needs(&mut self, batch: &Batch) -> Option<Arc<Needs>> {
        if self.parts.devices.len() < 2 {
            return None;
        }
        if self.needs.len() >= NEEDS_MAX {
            self.needs.clear();
        }
        let input = self.parts.input();
        let known = self.needs.entry(NeedShape::of(batch));
        Some(Arc::clone(known.or_insert_with_key(|shape| Arc::new(Needs::new(&input, shape)))))
    }

    /// Predicted time of a chunk of a planned shape.
    fn time_planned(&mut self, shape: ChunkShape) -> Option<f64> {
        if let Some(time) = self.times.get(&shape) {
            return Some(*time);
        }
        let route = self.route(shape).ok()?;
        let time = alone(&self.parts.input(), &shape, &route).makespan.as_nanos() as f64;
        self.times.insert(shape, time);
        Some(time)
    }
}
