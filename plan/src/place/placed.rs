//! A strategy with ops placed by hand.

use std::ops::Range;
use std::sync::Arc;

use super::Places;
use crate::strategy::stages::{Stages, joinable, runs};
use crate::strategy::{ChunkShape, OrderSwap, PlanInput, PromptRows, Strategy};
use crate::{DeviceId, PlanError, Route, Stage};

/// Any strategy, with the ops that a user has placed on the devices named: the strategy's stages
/// are split at the borders of the placed runs. An NPU runs them in several standard sizes with
/// little padding. Neighbours on one device become one stage, except where the strategy keeps them
/// apart itself.
#[derive(Clone)]
pub struct Placed {
    /// The strategy.
    pub inner: Arc<dyn Strategy>,
    /// What is placed.
    pub places: Places,
    /// Operand order of placed products on the NPU.
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
        let found = self.places.resolve(input.graph, input.devices)?;
        let route = self.inner.route(input, shape)?;
        if found.iter().all(Option::is_none) {
            return Ok(route);
        }
        let mut list: Vec<Stage> = Vec::new();
        let compute: Vec<&Stage> = route.compute_stages().collect();
        for (at, stage) in compute.iter().copied().enumerate() {
            let border = at.checked_sub(1).map(|before| compute[before]);
            // What the strategy could have joined, it keeps apart.
            let apart = border.is_some_and(|before| joinable(before, stage));
            for (piece, new) in self.split(input, shape, (stage, &found)).into_iter().enumerate() {
                match list.last_mut() {
                    Some(last) if !(piece == 0 && apart) && joinable(last, &new) => {
                        last.nodes.end = new.nodes.end;
                    }
                    _ => list.push(new),
                }
            }
        }
        let placed = found.iter().flatten().count();
        let reason = format!("{}; {placed} ops placed by hand", route.reason);
        Route::new(list, reason, None, input.route_for(shape))
    }
}

impl Placed {
    /// A stage, with its placed runs on their devices.
    fn split(
        &self,
        input: &PlanInput<'_>,
        shape: &ChunkShape,
        (stage, found): (&Stage, &[Option<DeviceId>]),
    ) -> Vec<Stage> {
        let only = stage.only_device();
        // An op that is placed where it is already stays in its stage.
        let place = |node: usize| found[node].filter(|device| Some(*device) != only);
        let mut list = Vec::new();
        for (nodes, device) in runs(stage.nodes.clone(), place) {
            match device {
                Some(device) => list.extend(self.placed(input, shape, (device, nodes))),
                None => list.push(Stage { nodes, ..stage.clone() }),
            }
        }
        list
    }

    fn placed(
        &self,
        input: &PlanInput<'_>,
        shape: &ChunkShape,
        (device, nodes): (DeviceId, Range<usize>),
    ) -> Vec<Stage> {
        let mut stages = Stages::new(input, shape, self.order_swap);
        // Selected rows are another number of rows, and so other graphs.
        for (nodes, _) in runs(nodes, |node| stages.rows(&(node..node + 1))) {
            stages.on_any(device, nodes);
        }
        stages.into_list()
    }
}
