//! The decider: predicts every strategy for a prompt and takes the fastest.

use std::collections::HashMap;
use std::fmt;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::{ChunkShape, PlanInput, PromptRows, Strategy};
use crate::Phase;
use crate::predict::{Prediction, Workload, alone, plan, predict};
use crate::{PlanError, Route};

/// The decider (S2-39): predicts the time of every candidate strategy, by laying its chunks out
/// over the devices, and takes the one that ends first: for each prompt length one, and for
/// generated tokens another. Times are warm ones: of devices that have their graphs, as all chunks
/// but the first of a shape find them; what it takes to prepare them decides nothing. Where two are predicted to take the same, the earlier candidate wins.
///
/// Every chunk of a prompt is of the strategy that won the prompt.
pub struct Auto {
    candidates: Vec<Arc<dyn Strategy>>,
    in_flight: usize,
    decided: Mutex<Decided>,
}

/// Indices of winners: decisions are made once.
#[derive(Default)]
struct Decided {
    /// Of prompts of so many rows.
    prompts: HashMap<usize, usize>,
    /// Of chunks that hold no prompt alone.
    shapes: HashMap<ChunkShape, usize>,
}

/// Most decisions of a kind that are remembered.
const DECIDED_MAX: usize = 4096;

/// What was predicted for a candidate.
#[derive(Clone, Debug)]
pub struct Rated {
    /// Name of the strategy.
    pub strategy: String,
    /// Its time and its first route, or why it has none.
    pub outcome: Result<(Prediction, Arc<Route>), PlanError>,
}

impl Rated {
    /// Predicted time; none without a route.
    pub fn makespan(&self) -> Option<Duration> {
        self.outcome.as_ref().ok().map(|(prediction, _)| prediction.makespan)
    }
}

/// Why a strategy was chosen.
#[derive(Clone, Debug)]
pub struct Explanation {
    /// Every candidate, in the order in which they were given.
    pub rated: Vec<Rated>,
    /// Index of the winner.
    pub winner: usize,
}

impl Explanation {
    /// The winner.
    pub fn winner(&self) -> &Rated {
        &self.rated[self.winner]
    }

    /// The fastest of the others.
    pub fn runner_up(&self) -> Option<&Rated> {
        let others = self.rated.iter().enumerate().filter(|(at, _)| *at != self.winner);
        others
            .map(|(_, rated)| rated)
            .filter(|r| r.makespan().is_some())
            .min_by_key(|r| r.makespan())
    }
}

impl fmt::Display for Explanation {
    /// Why the winner won, in one line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let winner = self.winner();
        let Ok((prediction, _)) = &winner.outcome else { return Ok(()) };
        write!(f, "'{}' is predicted to take {:.1?}", winner.strategy, prediction.makespan)?;
        if let Some(other) = self.runner_up()
            && let Some(time) = other.makespan()
        {
            write!(f, ", the next best, '{}', {time:.1?}", other.strategy)?;
        }
        let busiest = prediction.busiest().as_secs_f64();
        let share = 100.0 * busiest / prediction.makespan.as_secs_f64().max(1e-12);
        write!(f, "; its busiest device computes {share:.0} % of that")
    }
}

impl Auto {
    /// A decider between candidates, of which at least one must fit the devices. `in_flight`:
    /// chunks that the engine lets in at once.
    pub fn new(candidates: Vec<Arc<dyn Strategy>>, in_flight: usize) -> Auto {
        Auto { candidates, in_flight, decided: Mutex::default() }
    }

    /// Predicts a prompt with every candidate.
    ///
    /// # Errors
    /// [`PlanError`] of the first candidate when none has a route.
    pub fn explain_prompt(
        &self,
        input: &PlanInput<'_>,
        prompt: usize,
        context: usize,
    ) -> Result<Explanation, PlanError> {
        let work = Workload { prompt, context, in_flight: self.in_flight };
        let rate = |strategy: &Arc<dyn Strategy>| {
            let chunks = plan(&**strategy, input, work)?;
            let prediction = predict(input, &chunks, self.in_flight);
            let first = chunks.into_iter().next().map(|chunk| chunk.route);
            let route = first.ok_or(PlanError::Coverage { found: 0..0, expected: 0 })?;
            Ok((prediction, route))
        };
        let rated = self.candidates.iter().map(|strategy| Rated {
            strategy: strategy.name().to_owned(),
            outcome: rate(strategy),
        });
        explanation(rated.collect())
    }

    /// Predicts one chunk alone with every candidate, such as a step of generation.
    ///
    /// # Errors
    /// As [`explain_prompt`](Auto::explain_prompt).
    pub fn explain_chunk(
        &self,
        input: &PlanInput<'_>,
        shape: &ChunkShape,
    ) -> Result<Explanation, PlanError> {
        let rate = |strategy: &Arc<dyn Strategy>| {
            let route = strategy.route(input, shape)?;
            Ok((alone(input, shape, &route), route))
        };
        let rated = self.candidates.iter().map(|strategy| Rated {
            strategy: strategy.name().to_owned(),
            outcome: rate(strategy),
        });
        explanation(rated.collect())
    }

    /// The candidate for a prompt of so many rows.
    fn decide_prompt(&self, input: &PlanInput<'_>, rows: usize) -> Result<usize, PlanError> {
        if let Some(known) = self.decided().prompts.get(&rows) {
            return Ok(*known);
        }
        let winner = self.explain_prompt(input, rows, 0)?.winner;
        keep(&mut self.decided().prompts, rows, winner);
        Ok(winner)
    }

    /// The candidate for a chunk that holds generated tokens.
    fn decide_chunk(&self, input: &PlanInput<'_>, shape: &ChunkShape) -> Result<usize, PlanError> {
        if let Some(known) = self.decided().shapes.get(shape) {
            return Ok(*known);
        }
        let winner = self.explain_chunk(input, shape)?.winner;
        keep(&mut self.decided().shapes, *shape, winner);
        Ok(winner)
    }

    fn decided(&self) -> MutexGuard<'_, Decided> {
        self.decided.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn explanation(rated: Vec<Rated>) -> Result<Explanation, PlanError> {
    let times = rated.iter().enumerate().filter_map(|(at, r)| Some((r.makespan()?, at)));
    match times.min() {
        Some((_, winner)) => Ok(Explanation { rated, winner }),
        None => Err(rated
            .into_iter()
            .find_map(|r| r.outcome.err())
            .unwrap_or(PlanError::Coverage { found: 0..0, expected: 0 })),
    }
}

impl Strategy for Auto {
    fn name(&self) -> &str {
        "auto"
    }

    fn chunk_rows(&self, input: &PlanInput<'_>, prompt: PromptRows) -> usize {
        match self.decide_prompt(input, prompt.all) {
            Ok(winner) => self.candidates[winner].chunk_rows(input, prompt),
            // The route of the chunk tells why there is none.
            Err(_) => prompt.due.min(input.chunk_rows),
        }
    }

    fn route(&self, input: &PlanInput<'_>, shape: &ChunkShape) -> Result<Arc<Route>, PlanError> {
        let winner = match shape.phase {
            Phase::Prefill => self.decide_prompt(input, shape.prompt.max(shape.rows))?,
            Phase::Decode | Phase::Mixed => self.decide_chunk(input, shape)?,
        };
        let strategy = &self.candidates[winner];
        let route = strategy.route(input, shape)?;
        let predicted = alone(input, shape, &route).makespan;
        let of = if shape.phase == Phase::Prefill { "prompt" } else { "step" };
        let reason =
            format!("{} (predicted fastest for the {of}): {}", strategy.name(), route.reason);
        Ok(Arc::new(Route { reason, predicted: Some(predicted), ..Route::clone(&route) }))
    }
}

/// Remembers a decision; where there are too many, those before it are forgotten.
fn keep<K: Eq + Hash>(decisions: &mut HashMap<K, usize>, key: K, winner: usize) {
    if decisions.len() >= DECIDED_MAX {
        decisions.clear();
    }
    decisions.insert(key, winner);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::Modelled;
    use crate::rate::{RateModel, Rates};
    use crate::strategy::{CpuOnly, LayerSplit};
    use crate::time::TimeModel;
    use lapwing_kernels::device::{DeviceInfo, DeviceKind};
    use lapwing_kernels::graph::{Graph, NewNode, WeightSpec};
    use lapwing_kernels::op::Op;
    use lapwing_kernels::quant::DType;

    fn graph() -> Arc<Graph> {
        let mut graph = Graph::default();
        let spec = WeightSpec { name: "w".into(), rows: 4, cols: 4, dtype: DType::F32 };
        let table = graph.add_weight(spec);
        let node = |op, layer| NewNode { op, inputs: &[], width: 4, layer, role: "test" };
        let mut x = graph.push(node(Op::Embed { table, scale: 1.0 }, None));
        for layer in 0..4 {
            let op = node(Op::SoftCap { cap: 1.0 }, Some(layer));
            x = graph.push(NewNode { inputs: &[x], ..op });
        }
        let op = node(Op::SelectRows, None);
        graph.push(NewNode { inputs: &[x], ..op });
        Arc::new(graph)
    }

    /// Two devices of a million operations per second.
    fn cost(graph: &Arc<Graph>) -> Modelled {
        let submit = Duration::from_micros(10);
        let rate = Rates {
            gflops: 1e-3,
            gbps: 1.0,
            submit_queued: submit,
            submit_idle: submit,
            sync: Duration::ZERO,
        };
        let model = RateModel::new(Arc::clone(graph), rate).expect("a rate");
        let device: Arc<dyn TimeModel> = Arc::new(model);
        let devices = vec![Arc::clone(&device), device];
        Modelled { devices, sync: Duration::from_micros(1), copy_rate: 1e9 }
    }

    fn device(name: &str) -> DeviceInfo {
        DeviceInfo::new(name, DeviceKind::Cpu)
    }

    fn auto() -> Auto {
        Auto::new(vec![Arc::new(CpuOnly), Arc::new(LayerSplit)], 2)
    }

    #[test]
    fn a_pipeline_wins_where_chunks_overlap_and_loses_where_there_is_one() {
        let graph = graph();
        let (cost, auto) = (cost(&graph), auto());
        let devices = [device("a"), device("b")];
        let input = PlanInput {
            model: Default::default(),
            graph: &graph,
            devices: &devices,
            cost: &cost,
            chunk_rows: 16,
        };
        let winner = |rows| {
            let explanation = auto.explain_prompt(&input, rows, 0).expect("routes");
            explanation.winner().strategy.clone()
        };
        assert_eq!(winner(160), "layer-split");
        assert_eq!(winner(16), "cpu-only");
    }

    #[test]
    fn every_chunk_of_a_prompt_is_of_the_strategy_that_won_it() {
        let graph = graph();
        let (cost, auto) = (cost(&graph), auto());
        let devices = [device("a"), device("b")];
        let input = PlanInput {
            model: Default::default(),
            graph: &graph,
            devices: &devices,
            cost: &cost,
            chunk_rows: 16,
        };
        let work = Workload { prompt: 70, context: 0, in_flight: 2 };
        let chunks = plan(&auto, &input, work).expect("routes");
        let winner = auto.explain_prompt(&input, 70, 0).expect("routes");
        let name = &winner.winner().strategy;
        assert_eq!(chunks.iter().map(|c| c.shape.rows).sum::<usize>(), 70);
        assert!(chunks.iter().all(|c| c.route.reason.starts_with(name)), "{chunks:?}");
    }

    #[test]
    fn no_candidate_that_fits_is_an_error_and_no_panic() {
        let graph = graph();
        let cost = cost(&graph);
        let input = PlanInput {
            model: Default::default(),
            graph: &graph,
            devices: &[device("a")],
            cost: &cost,
            chunk_rows: 16,
        };
        let step = ChunkShape { phase: Phase::Decode, rows: 1, selected: 1, context: 3, prompt: 0 };
        assert!(Auto::new(Vec::new(), 2).route(&input, &step).is_err());
        assert_eq!(Auto::new(Vec::new(), 2).chunk_rows(&input, PromptRows::new(99)), 16);
    }
}
