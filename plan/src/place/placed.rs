//! A strategy with manually placed ops.

use std::ops::Range;
use std::sync::Arc;

use super::places::Places;
use crate::chunk::{ChunkShape, PromptRows};
use crate::device::DeviceId;
use crate::error::PlanError;
use crate::route::Route;
use crate::stage::Stage;
use crate::strategy::interface::{PlanInput, Strategy};
use crate::strategy::options::OrderSwap;
use crate::strategy::route_builder::{RouteBuilder, joinable, runs};

/// Any strategy, with some ops placed manually. The stages of the inner strategy are split at the
/// borders of the placed runs. An NPU runs placed ops in several standard graphs with little
/// padding. Consecutive stages on one device are joined, unless the inner strategy keeps them apart.
#[derive(Clone)]
pub struct Placed {
    /// The inner strategy.
    pub inner: Arc<dyn Strategy>,
    /// The placements.
    pub places: Places,
    /// Operand order of placed matmuls on the NPU.
    pub order_swap: OrderSwap,
}

impl Strategy for Placed {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn chunk_rows(&self, input: &PlanInput<'_>, prompt: PromptRows) -> usize {
        self.inner.chunk_rows(input, prompt)
    }

    fn route(&self, input: &PlanInput<'_>, shape: &ChunkShape) -> Result<Arc<Route>, PlanError> {
        self.with_places(input, shape, self.inner.route(input, shape)?)
    }

    fn routes(
        &self,
        input: &PlanInput<'_>,
        shape: &ChunkShape,
    ) -> Result<Vec<Arc<Route>>, PlanError> {
        let routes = self.inner.routes(input, shape)?;
        routes.into_iter().map(|route| self.with_places(input, shape, route)).collect()
    }
}

impl Placed {
    /// A route of the inner strategy with its ops placed.
    fn with_places(
        &self,
        input: &PlanInput<'_>,
        shape: &ChunkShape,
        route: Arc<Route>,
    ) -> Result<Arc<Route>, PlanError> {
        let found = self.places.resolve(input.graph, input.devices)?;
        if found.iter().all(Option::is_none) {
            return Ok(route);
        }
        let mut list: Vec<Stage> = Vec::new();
        let compute: Vec<&Stage> = route.compute_stages().collect();
        for (at, stage) in compute.iter().copied().enumerate() {
            let border = at.checked_sub(1).map(|before| compute[before]);
            // The inner strategy keeps two stages apart if it could have joined them.
            let apart = border.is_some_and(|before| joinable(before, stage));
            for (piece, new) in self.split(input, shape, stage, &found).into_iter().enumerate() {
                match list.last_mut() {
                    Some(last) if !(piece == 0 && apart) && joinable(last, &new) => {
                        last.nodes.end = new.nodes.end;
                    }
                    _ => list.push(new),
                }
            }
        }
        let placed = found.iter().flatten().count();
        let reason = format!("{}; {placed} ops placed manually", route.reason);
        let placed = Route::new(list, reason, None, input.route_for(shape))?;
        Ok(Arc::new(Route { rule: route.rule, ..Route::clone(&placed) }))
    }

    /// Splits a stage so that its placed runs are on their devices.
    fn split(
        &self,
        input: &PlanInput<'_>,
        shape: &ChunkShape,
        stage: &Stage,
        found: &[Option<DeviceId>],
    ) -> Vec<Stage> {
        let only = stage.only_device();
        // An op placed on the device of its stage stays in the stage.
        let place = |node: usize| found[node].filter(|device| Some(*device) != only);
        let mut list = Vec::new();
        for (nodes, device) in runs(stage.nodes.clone(), place) {
            match device {
                Some(device) => list.extend(self.placed(input, shape, device, nodes)),
                None => list.push(Stage { nodes, ..stage.clone() }),
            }
        }
        list
    }

    /// The stages of placed nodes on their device.
    fn placed(
        &self,
        input: &PlanInput<'_>,
        shape: &ChunkShape,
        device: DeviceId,
        nodes: Range<usize>,
    ) -> Vec<Stage> {
        let mut stages = RouteBuilder::new(input, shape).order_swap(self.order_swap);
        // Selected rows need graphs of another size.
        for (nodes, _) in runs(nodes, |node| stages.rows(&(node..node + 1))) {
            stages.on(device, nodes);
        }
        stages.into_list()
    }
}
