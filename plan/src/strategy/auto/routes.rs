//! The routes of a chunk, once a strategy has won.

use std::sync::Arc;
use std::time::Duration;

use super::super::interface::PlanInput;
use super::super::options::MomentRoutes;
use super::mix::Mix;
use super::{Auto, DECIDED_MAX, Rated, RoutesOf, remember};
use crate::chunk::ChunkShape;
use crate::error::PlanError;
use crate::moment::{Candidate, Known, Sent};
use crate::phase::Phase;
use crate::predict::{PlannedChunk, Workload, alone, predict};
use crate::route::Route;
use crate::rule::Rule;

/// Rows of chunks by which a prompt is mixed.
const SIZES: [usize; 4] = [64, 128, 256, 512];

/// Up to so many rows, prompts are rounded to this step.
const STEPS_TO: usize = 1024;
const STEP: usize = 128;

/// A prompt of fewer chunks is not mixed: what the last ones wait for each other counts too much.
const CHUNKS_LEAST: usize = 6;

/// Chunks of a prompt by which rules are compared, at most.
const CHUNKS_MOST: usize = 16;

/// What a device that is slower than predicted takes.
const SLOWER: [f64; 2] = [1.05, 1.15];

/// Most shapes of which routes are remembered: those of a prompt in chunks of all sizes. A route with hundreds of stages takes 100 kB.
const SHAPES_MAX: usize = 32;

/// A smaller gain of a rule is within the error of the predictions.
const GAIN: f64 = 0.03;

/// A prompt whose chunks take different routes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mixed {
    /// Rows of its chunks.
    pub rows: usize,
    /// Predicted time.
    pub time: Duration,
}

impl Auto {
    /// The winner for a chunk of this shape.
    pub(super) fn decide(
        &self,
        input: &PlanInput<'_>,
        shape: &ChunkShape,
    ) -> Result<usize, PlanError> {
        match shape.phase {
            Phase::Prefill => Ok(self.decide_prompt(input, shape.prompt.max(shape.rows))?.winner),
            Phase::Decode | Phase::Mixed => self.decide_chunk(input, shape),
        }
    }

    /// By what a chunk of this shape chooses among several routes.
    pub(super) fn rule_for(
        &self,
        input: &PlanInput<'_>,
        shape: &ChunkShape,
        winner: usize,
    ) -> Result<Rule, PlanError> {
        if shape.phase != Phase::Prefill {
            return Ok(Rule::default());
        }
        let mixed = self.decide_prompt(input, shape.prompt.max(shape.rows))?.mixed;
        let is_last = shape.context + shape.rows >= shape.prompt;
        Ok(match mixed {
            Some(rows) if shape.rows <= rows => Rule::Mix,
            _ if !is_last => self.rule_of(input, winner, shape),
            // What is left of a prompt goes on as its other chunks did.
            _ if shape.context > 0 => Rule::Alone,
            _ => Rule::First,
        })
    }

    /// The route of the winner.
    pub(super) fn route_by(
        &self,
        input: &PlanInput<'_>,
        shape: &ChunkShape,
        winner: usize,
    ) -> Result<Arc<Route>, PlanError> {
        let strategy = &self.candidates[winner];
        let route = strategy.route(input, shape)?;
        let predicted = alone(input, shape, &route).makespan;
        let of = if shape.phase == Phase::Prefill { "prompt" } else { "step" };
        let reason =
            format!("{} (predicted fastest for the {of}): {}", strategy.name(), route.reason);
        Ok(Arc::new(Route { reason, predicted: Some(predicted), ..Route::clone(&route) }))
    }

    /// The routes that a chunk may take, that of the winner first, without the rule by which it chooses. Those of the latest shapes are
    /// remembered: by them a prompt's rule is predicted, and then its chunks are planned.
    pub(super) fn routes_by(
        &self,
        input: &PlanInput<'_>,
        shape: &ChunkShape,
        winner: usize,
    ) -> Result<Vec<Arc<Route>>, PlanError> {
        let shape = ChunkShape { prompt: 0, ..*shape };
        let of = RoutesOf { winner, model: input.model, nodes: input.graph.nodes().len(), shape };
        if let Some(known) = self.decisions().routes.get(&of) {
            return Ok(known.clone());
        }
        let routes = self.all_routes_by(input, &shape, winner)?;
        let routes: Vec<Arc<Route>> = match routes.len() {
            1 => routes,
            _ => {
                let candidates = Candidate::of_routes(input, &shape, routes).into_iter();
                candidates.map(|candidate| candidate.route).collect()
            }
        };
        remember(&mut self.decisions().routes, SHAPES_MAX, of, routes.clone());
        Ok(routes)
    }

    /// As [`routes_by`](Auto::routes_by), also those to which another one is preferable in every way.
    fn all_routes_by(
        &self,
        input: &PlanInput<'_>,
        shape: &ChunkShape,
        winner: usize,
    ) -> Result<Vec<Arc<Route>>, PlanError> {
        let first = self.route_by(input, shape, winner)?;
        if self.moment == MomentRoutes::Off || input.devices.len() < 2 {
            return Ok(vec![first]);
        }
        let of = if shape.phase == Phase::Prefill { "prompts" } else { "steps" };
        let is_any = self.moment == MomentRoutes::Any;
        let mut known = vec![(alone(input, shape, &first), first)];
        for Rated { strategy, outcome } in self.explain_chunk(input, shape)?.rated {
            let Ok((prediction, route)) = outcome else { continue };
            let is_known = known.iter().any(|(_, known)| known.stages == route.stages);
            let may_choose = is_any || input.is_of_one_arithmetic([&*known[0].1, &*route]);
            if is_known || !may_choose {
                continue;
            }
            let reason =
                format!("{strategy} (predicted to end first beside other {of}): {}", route.reason);
            let predicted = Some(prediction.makespan);
            let route = Arc::new(Route { reason, predicted, ..Route::clone(&route) });
            known.push((prediction, route));
        }
        if shape.phase == Phase::Prefill {
            let order_swap = self.order_swap;
            known.extend(Mix { input, shape, order_swap, is_any }.routes(&known));
        }
        Ok(known.into_iter().map(|(_, route)| route).collect())
    }

    /// A prompt of so many rows in chunks that take different routes, of the size that is predicted to be the fastest. `None` if that is no
    /// faster than `time`, in which the winner computes it.
    pub(super) fn faster_mix(
        &self,
        input: &PlanInput<'_>,
        winner: usize,
        rows: usize,
        time: Duration,
    ) -> Option<Mixed> {
        if self.moment == MomentRoutes::Off || input.devices.len() < 2 {
            return None;
        }
        // Prompts of about the same length have one size of chunks, so that few are predicted.
        let rounded = match rows {
            few if few <= STEPS_TO => few.next_multiple_of(STEP),
            many => many.next_power_of_two(),
        };
        let key = (winner, rounded);
        let known = self.decisions().mixes.get(&key).copied();
        let mixed = known.unwrap_or_else(|| {
            let mixed = self.fastest_mix(input, winner, rounded);
            remember(&mut self.decisions().mixes, DECIDED_MAX, key, mixed);
            mixed
        })?;
        let time_of_it = mixed.time.mul_f64(rows as f64 / rounded as f64);
        let is_faster = time_of_it < time.mul_f64(1.0 - GAIN) && mixed.rows < rows;
        is_faster.then_some(Mixed { time: time_of_it, ..mixed })
    }

    /// The fastest size of chunks for a prompt of so many rows.
    fn fastest_mix(&self, input: &PlanInput<'_>, winner: usize, rows: usize) -> Option<Mixed> {
        let sizes = SIZES.into_iter().filter(|size| size * CHUNKS_LEAST <= rows);
        let work = Workload { prompt: rows, context: 0, in_flight: self.in_flight };
        let mixed = sizes.filter(|size| *size <= input.chunk_rows).filter_map(|rows| {
            let cut = CutPrompt::new(self, input, winner, work, rows).ok()?;
            Some(Mixed { rows, time: cut.time(input, Rule::Mix) })
        });
        mixed.min_by_key(|mixed| mixed.time)
    }

    /// The rule by which a prompt in about so many chunks like this one is predicted to be done first: that of a chunk alone unless another
    /// one gains.
    fn rule_of(&self, input: &PlanInput<'_>, winner: usize, shape: &ChunkShape) -> Rule {
        let rows = shape.rows.next_power_of_two().min(input.chunk_rows.max(1));
        let chunks = shape.prompt.div_ceil(rows);
        if chunks < CHUNKS_LEAST {
            return Rule::Alone;
        }
        let chunks = chunks.next_power_of_two().min(CHUNKS_MOST);
        let key = (winner, [rows, chunks]);
        if let Some(known) = self.decisions().rules.get(&key) {
            return *known;
        }
        let work = Workload { prompt: chunks * rows, context: 0, in_flight: self.in_flight };
        let rule = CutPrompt::new(self, input, winner, work, rows).map_or(Rule::Alone, |cut| {
            let least = cut.time(input, Rule::Alone).mul_f64(1.0 - GAIN);
            let others = [Rule::First, Rule::Mix].map(|rule| (cut.time(input, rule), rule));
            let best = others.into_iter().min_by_key(|(time, _)| *time);
            best.filter(|(time, _)| *time < least).map_or(Rule::Alone, |(_, rule)| rule)
        });
        remember(&mut self.decisions().rules, DECIDED_MAX, key, rule);
        rule
    }
}

/// A prompt in chunks, with the routes that each may take.
struct CutPrompt {
    chunks: Vec<(ChunkShape, Arc<[Candidate]>)>,
    in_flight: usize,
}

impl CutPrompt {
    /// With so many rows in each chunk.
    fn new(
        auto: &Auto,
        input: &PlanInput<'_>,
        winner: usize,
        work: Workload,
        rows: usize,
    ) -> Result<CutPrompt, PlanError> {
        let Workload { prompt, context, in_flight } = work;
        let shape = |start: usize| {
            let rows = rows.min(prompt - start);
            let selected = usize::from(start + rows == prompt);
            let (phase, context) = (Phase::Prefill, context + start);
            ChunkShape { phase, rows, selected, context, prompt }
        };
        let mut known = Known::default();
        let chunks = (0..prompt).step_by(rows).map(|start| {
            let shape = shape(start);
            let candidates = known.of(input, &shape, |shape| {
                let routes = auto.routes_by(input, shape, winner)?;
                Ok(Candidate::of_routes(input, shape, routes))
            })?;
            Ok((shape, candidates))
        });
        Ok(CutPrompt { chunks: chunks.collect::<Result<_, PlanError>>()?, in_flight })
    }

    /// Its predicted time alone in an engine, by a rule. Which routes chunks take depends on small differences of times, and an unlucky order
    /// costs more than a mix gains, so that the longest time of several runs counts, in each of which another device is taken to be
    /// slower.
    fn time(&self, input: &PlanInput<'_>, rule: Rule) -> Duration {
        let devices = input.devices.len();
        let sent = || Sent::new(devices, self.in_flight, Vec::new());
        let time = |sent| self.time_of(input, rule, sent);
        if rule == Rule::Alone {
            return time(sent());
        }
        let others = (0..devices).flat_map(|device| SLOWER.map(|factor| (device, factor)));
        let others = others.map(|(device, factor)| time(sent().with_slow(device, factor)));
        others.chain([time(sent())]).max().unwrap_or_default()
    }

    fn time_of(&self, input: &PlanInput<'_>, rule: Rule, mut sent: Sent) -> Duration {
        let count = self.chunks.len();
        let chunks = self.chunks.iter().enumerate().map(|(at, (shape, candidates))| {
            let taken = match rule {
                Rule::Alone => 0,
                rule => sent.next(candidates, rule, count - at - 1),
            };
            PlannedChunk { shape: *shape, route: Arc::clone(&candidates[taken].route) }
        });
        let chunks: Vec<PlannedChunk> = chunks.collect();
        predict(input, &chunks, self.in_flight).makespan
    }
}
