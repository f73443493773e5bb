//! Predicts every candidate strategy, and uses the fastest.

use super::auto_place::Kept;
use super::entry::{Maker, StrategyEntry};
use super::interface::{PlanInput, Strategy};
use super::options::{MomentRoutes, OrderSwap};
use crate::chunk::{ChunkShape, PromptRows};
use crate::error::PlanError;
use crate::predict::prediction::Prediction;
use crate::predict::{Workload, plan};
use crate::predict::{alone, predict};
use crate::route::Route;
use crate::rule::Rule;
use lapwing_kernels::device::ModelId;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

mod explanation;
mod mix;
mod routes;

use explanation::explanation;
pub use explanation::{Explanation, Rated};
pub use routes::Mixed;

/// Predicts the makespan of every candidate strategy by simulating its chunks on the devices, and
/// uses the fastest: one strategy for each prompt length, and one for each shape of decode step.
/// Predictions assume that all graphs are prepared, as they are for all but the first chunk of a
/// shape. Of equally fast candidates the first wins. If the model is larger than a device's own memory, only candidates win that use
/// no other weights there than [`AutoPlace`](super::AutoPlace) keeps, so that all routes fit together.
///
/// All chunks of a prompt follow the same strategy. The run-time decider of HeteroLLM
/// (arXiv 2501.14794) chooses by phase and length in the same way.
pub struct Auto {
    candidates: Vec<Arc<dyn Strategy>>,
    in_flight: usize,
    moment: MomentRoutes,
    order_swap: OrderSwap,
    decisions: Mutex<Decisions>,
}

/// What was decided. Each decision is made once.
#[derive(Default)]
struct Decisions {
    /// Decision by rows of a prompt.
    prompts: HashMap<usize, PromptDecision>,
    /// The fastest mix by winner and rounded rows of a prompt.
    mixes: HashMap<(usize, usize), Option<Mixed>>,
    /// The rule by winner, rounded rows of a chunk and rounded number of chunks.
    rules: HashMap<(usize, [usize; 2]), Rule>,
    /// Winner by shape, for chunks with decode rows.
    shapes: HashMap<ChunkShape, usize>,
    /// Routes of chunks.
    routes: HashMap<RoutesOf, Vec<Arc<Route>>>,
}

/// What the routes of a chunk depend on.
#[derive(PartialEq, Eq, Hash)]
struct RoutesOf {
    winner: usize,
    model: ModelId,
    /// Nodes of the model's graph, which is shorter for hidden states.
    nodes: usize,
    /// Without the length of the prompt, which decides only on the winner and the rule.
    shape: ChunkShape,
}

/// How a prompt is computed.
#[derive(Clone, Copy, Debug)]
struct PromptDecision {
    /// The winner among the strategies.
    winner: usize,
    /// Rows of its chunks, if it is computed sooner in smaller ones that take different routes.
    mixed: Option<usize>,
}

/// Maximum cached decisions of each kind.
const DECIDED_MAX: usize = 4096;

impl Auto {
    /// Chooses between candidates, at least one of which must have a route on the devices. Their routes of a chunk do not depend on the length
    /// of its prompt.
    /// `in_flight`: chunks that the engine admits at the same time.
    pub fn new(candidates: Vec<Arc<dyn Strategy>>, in_flight: usize) -> Auto {
        let (moment, order_swap) = Default::default();
        Auto { candidates, in_flight, moment, order_swap, decisions: Mutex::default() }
    }

    /// With other routes for chunks where devices are busy.
    #[must_use]
    pub fn with_moment(self, moment: MomentRoutes) -> Auto {
        Auto { moment, ..self }
    }

    /// With another operand order on the NPU in routes of its own.
    #[must_use]
    pub fn with_order_swap(self, order_swap: OrderSwap) -> Auto {
        Auto { order_swap, ..self }
    }

    /// Predicts every candidate for a prompt of `prompt` rows after `context` rows in the KV cache.
    ///
    /// # Errors
    /// [`PlanError`] of the first candidate if none has a route.
    pub fn explain_prompt(
        &self,
        input: &PlanInput<'_>,
        prompt: usize,
        context: usize,
    ) -> Result<Explanation, PlanError> {
        let work = Workload { prompt, context, in_flight: self.in_flight };
        let rate = |strategy: &Arc<dyn Strategy>, kept: Option<&Kept>| {
            let chunks = plan(&**strategy, input, work)?;
            within(kept, input, chunks.iter().map(|chunk| &*chunk.route))?;
            let prediction = predict(input, &chunks, self.in_flight);
            let first = chunks.into_iter().next().map(|chunk| chunk.route);
            let route = first.ok_or(PlanError::Coverage { found: 0..0, expected: 0 })?;
            Ok((prediction, route))
        };
        let mut explained = self.explained(input, rate)?;
        let time = explained.winner().makespan().filter(|_| context == 0);
        let mixed = time.and_then(|time| self.faster_mix(input, explained.winner, prompt, time));
        explained.mixed = mixed;
        Ok(explained)
    }

    /// Predicts every candidate for one chunk alone, such as a decode step.
    ///
    /// # Errors
    /// As [`explain_prompt`](Auto::explain_prompt).
    pub fn explain_chunk(
        &self,
        input: &PlanInput<'_>,
        shape: &ChunkShape,
    ) -> Result<Explanation, PlanError> {
        let rate = |strategy: &Arc<dyn Strategy>, kept: Option<&Kept>| {
            let route = strategy.route(input, shape)?;
            within(kept, input, [&*route])?;
            Ok((alone(input, shape, &route), route))
        };
        self.explained(input, rate)
    }

    /// The candidates by `rate`, of which those win that keep to what fits into the devices' memories for all shapes. If the caller's
    /// placements let none do so, each may win whose own routes fit.
    fn explained(
        &self,
        input: &PlanInput<'_>,
        rate: impl Fn(&Arc<dyn Strategy>, Option<&Kept>) -> Result<(Prediction, Arc<Route>), PlanError>,
    ) -> Result<Explanation, PlanError> {
        let kept = Kept::of(input);
        let rated = |kept: Option<&Kept>| {
            let rated = self.candidates.iter().map(|strategy| Rated {
                strategy: strategy.name().to_owned(),
                outcome: rate(strategy, kept),
            });
            explanation(rated.collect())
        };
        match rated(kept.as_ref()) {
            Err(PlanError::NotKept { .. }) => rated(None),
            explained => explained,
        }
    }

    /// How a prompt of `rows` rows is computed.
    fn decide_prompt(
        &self,
        input: &PlanInput<'_>,
        rows: usize,
    ) -> Result<PromptDecision, PlanError> {
        if let Some(known) = self.decisions().prompts.get(&rows) {
            return Ok(*known);
        }
        let Explanation { winner, mixed, .. } = self.explain_prompt(input, rows, 0)?;
        let decision = PromptDecision { winner, mixed: mixed.map(|mixed| mixed.rows) };
        remember(&mut self.decisions().prompts, DECIDED_MAX, rows, decision);
        Ok(decision)
    }

    /// The winner for a chunk with decode rows.
    fn decide_chunk(&self, input: &PlanInput<'_>, shape: &ChunkShape) -> Result<usize, PlanError> {
        if let Some(known) = self.decisions().shapes.get(shape) {
            return Ok(*known);
        }
        let winner = self.explain_chunk(input, shape)?.winner;
        remember(&mut self.decisions().shapes, DECIDED_MAX, *shape, winner);
        Ok(winner)
    }

    fn decisions(&self) -> MutexGuard<'_, Decisions> {
        self.decisions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(super) const ENTRY: StrategyEntry = StrategyEntry::new(
    "auto",
    "the strategy with the least predicted time for each prompt length",
    &[],
    Maker::Auto,
);

impl Strategy for Auto {
    fn name(&self) -> &str {
        "auto"
    }

    fn chunk_rows(&self, input: &PlanInput<'_>, prompt: PromptRows) -> usize {
        match self.decide_prompt(input, prompt.all) {
            Ok(PromptDecision { mixed: Some(rows), .. }) => prompt.remaining.min(rows),
            Ok(PromptDecision { winner, .. }) => self.candidates[winner].chunk_rows(input, prompt),
            // The error is reported when the route of the chunk is requested.
            Err(_) => prompt.remaining.min(input.chunk_rows),
        }
    }

    fn route(&self, input: &PlanInput<'_>, shape: &ChunkShape) -> Result<Arc<Route>, PlanError> {
        self.route_by(input, shape, self.decide(input, shape)?)
    }

    /// That of the winner, and those of all candidates whose devices have the same arithmetic, or of all or none; of prompts also those
    /// by which chunks beside each other keep all devices busy.
    fn routes(
        &self,
        input: &PlanInput<'_>,
        shape: &ChunkShape,
    ) -> Result<Vec<Arc<Route>>, PlanError> {
        let winner = self.decide(input, shape)?;
        let routes = self.routes_by(input, shape, winner)?;
        if routes.len() < 2 {
            return Ok(routes);
        }
        let rule = self.rule_for(input, shape, winner)?;
        let ruled = |route: Arc<Route>| Arc::new(Route { rule, ..Route::clone(&route) });
        Ok(routes.into_iter().map(ruled).collect())
    }
}

/// Checks that routes take no more on a device than it keeps.
fn within<'a>(
    kept: Option<&Kept>,
    input: &PlanInput<'_>,
    routes: impl IntoIterator<Item = &'a Route>,
) -> Result<(), PlanError> {
    let Some(kept) = kept else { return Ok(()) };
    routes.into_iter().try_for_each(|route| kept.check(input, route))
}

/// Caches a decision among `most`. A full cache is cleared first.
fn remember<K: Eq + Hash, V>(decisions: &mut HashMap<K, V>, most: usize, key: K, decision: V) {
    if decisions.len() >= most {
        decisions.clear();
    }
    decisions.insert(key, decision);
}

#[cfg(test)]
mod tests;
