//! The trait of a strategy, and its input.

use std::sync::Arc;

use lapwing_kernels::device::{Arithmetic, Batch, DeviceInfo, DeviceKind, ModelId};
use lapwing_kernels::graph::Graph;

use super::roles::Needs;
use crate::chunk::{ChunkShape, PromptRows};
use crate::cost::CostModel;
use crate::device::DeviceId;
use crate::error::PlanError;
use crate::route::Route;
use crate::validate::RouteFor;

/// Input of a strategy.
#[derive(Clone, Copy)]
pub struct PlanInput<'a> {
    /// The model.
    pub model: ModelId,
    /// Ops of the model; for embeddings, only those up to the final norm
    /// ([`Graph::hidden`]).
    pub graph: &'a Graph,
    /// The engine's devices, indexed by [`DeviceId`](crate::DeviceId).
    pub devices: &'a [DeviceInfo],
    /// Predicts times.
    pub cost: &'a dyn CostModel,
    /// Maximum prompt rows of a chunk.
    pub chunk_rows: usize,
}

impl PlanInput<'_> {
    /// The graph, devices and rows that a route for this shape is checked against.
    pub fn route_for(&self, shape: &ChunkShape) -> RouteFor<'_> {
        let ChunkShape { rows, selected, .. } = *shape;
        RouteFor { model: self.model, graph: self.graph, devices: self.devices, rows, selected }
    }

    /// A batch of this shape of the model, as the input of a cost model.
    pub fn batch(&self, shape: &ChunkShape) -> Batch {
        Batch { model: self.model, ..shape.batch() }
    }

    /// Whether all devices that compute on these routes give the same bits.
    pub fn is_of_one_arithmetic<'a>(&self, routes: impl IntoIterator<Item = &'a Route>) -> bool {
        let stages = routes.into_iter().flat_map(Route::compute_stages);
        let mut devices = stages.flat_map(|stage| &stage.parts).map(|part| part.device);
        let Some(first) = devices.next() else { return true };
        let arithmetic = |device: DeviceId| self.devices.get(device.0).map(|it| it.arithmetic);
        let is_common = arithmetic(first) == Some(Arithmetic::Cpu);
        devices.all(|other| other == first || is_common && arithmetic(other) == arithmetic(first))
    }

    /// The first usable device of a kind. One that runs prepared graphs only is not usable if it has no graph sizes.
    ///
    /// # Errors
    /// [`PlanError::Needs`] or [`PlanError::NeedsTwoKinds`], with the name of the strategy, if there is none.
    pub fn need(&self, strategy: &str, kind: DeviceKind) -> Result<DeviceId, PlanError> {
        Needs { strategy, devices: self.devices }.first(kind)
    }
}

/// Decides which device runs which ops, and into which chunks a prompt is cut.
///
/// A strategy is a pure function of its input: a route is computed once per shape and cached.
pub trait Strategy: Send + Sync {
    /// Name on the command line.
    fn name(&self) -> &str;

    /// Rows of the next chunk of a prompt: at least 1, at most the remaining rows and
    /// [`PlanInput::chunk_rows`].
    fn chunk_rows(&self, input: &PlanInput<'_>, prompt: PromptRows) -> usize {
        prompt.remaining.min(input.chunk_rows)
    }

    /// The route of a chunk.
    ///
    /// # Errors
    /// [`PlanError`] if the strategy has no route for these devices.
    fn route(&self, input: &PlanInput<'_>, shape: &ChunkShape) -> Result<Arc<Route>, PlanError>;

    /// Routes that a chunk may take: first that of [`route`](Strategy::route), then others that may end earlier where devices are busy.
    /// All of them must give the same bits.
    ///
    /// # Errors
    /// As [`route`](Strategy::route).
    fn routes(
        &self,
        input: &PlanInput<'_>,
        shape: &ChunkShape,
    ) -> Result<Vec<Arc<Route>>, PlanError> {
        Ok(vec![self.route(input, shape)?])
    }
}
