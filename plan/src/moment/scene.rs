//! A moment that is described: the routes of the next chunk as the scheduler rates them, and what all prompts take on each of them.

use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use super::sent::Sent;
use super::{Candidate, Haste, LaneWork, Moment, StepLoad};
use crate::bound::{Bound, lower_bound, work_of_prompts};
use crate::chunk::{ChunkShape, PromptRows};
use crate::error::PlanError;
use crate::pace::{EFFICIENT_MIN, STEPS_WAITED, rows_between_steps, wait_of_step};
use crate::phase::Phase;
use crate::planner::Planner;
use crate::predict::{PlannedChunk, predict_warm};
use crate::rule::Rule;

/// What an engine does when a prompt arrives: `streams=2,prompts=1000+1000`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scene {
    /// Streams that generate, in one step.
    pub streams: usize,
    /// Tokens of the prompts that have arrived before, in order.
    pub prompts: Vec<usize>,
    /// Target of the streams.
    pub token_gap: Option<Duration>,
}

/// The text describes no moment.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{text}' is no moment; write streams=N, prompts=N+N or both, as in streams=2,prompts=1000+1000"
)]
pub struct SceneError {
    /// The text.
    pub text: String,
}

impl FromStr for Scene {
    type Err = SceneError;

    fn from_str(text: &str) -> Result<Scene, SceneError> {
        let wrong = || SceneError { text: text.to_owned() };
        let mut scene = Scene::default();
        for part in text.split(',') {
            let (key, value) = part.split_once('=').ok_or_else(wrong)?;
            let count = |text: &str| text.trim().parse::<usize>().ok().filter(|count| *count > 0);
            match key.trim() {
                "streams" => scene.streams = value.trim().parse().map_err(|_| wrong())?,
                "prompts" => {
                    let prompts: Option<Vec<usize>> = value.split('+').map(count).collect();
                    scene.prompts = prompts.ok_or_else(wrong)?;
                }
                _ => return Err(wrong()),
            }
        }
        Ok(scene)
    }
}

/// A route of the next chunk.
#[derive(Clone, Debug)]
pub struct RatedCandidate {
    /// The route.
    pub candidate: Candidate,
    /// When the chunk ends there.
    pub end: Duration,
    /// When all prompts are computed, if every chunk takes the route of its shape on these devices.
    pub all: Duration,
}

/// The step of the streams of a moment.
#[derive(Clone, Debug)]
pub struct RatedStep {
    /// Names of its devices.
    pub devices: Arc<str>,
    /// Its time alone.
    pub alone: Duration,
    /// Time from one to the next while prompts use its devices.
    pub gap: Duration,
}

/// The routes of the first chunk of a prompt, at a moment.
#[derive(Clone, Debug)]
pub struct RatedMoment {
    /// Rows of the chunk.
    pub rows: usize,
    /// What the devices have to do when the chunk is cut.
    pub moment: Moment,
    /// The step of the streams, if there are any.
    pub step: Option<RatedStep>,
    /// The routes; the first is that of a chunk alone.
    pub candidates: Vec<RatedCandidate>,
    /// The place of the one that the chunk takes.
    pub chosen: usize,
    /// When all prompts are computed, with the route of each chunk chosen in this way.
    pub all: Duration,
    /// The least time of these prompts on these devices. The steps of the streams come on top.
    pub bound: Bound,
}

/// A chunk that is to be computed, with the routes that it may take.
struct Open {
    shape: ChunkShape,
    candidates: Arc<[Candidate]>,
}

impl Planner {
    /// Rates the routes of the first chunk of a prompt of `prompt` tokens, which arrives at a moment after those of the scene have, in an
    /// engine with so many chunks in flight. `None` with a single device, which leaves no choice.
    ///
    /// # Errors
    /// [`PlanError`] if the strategy finds no route.
    pub fn rate_moment(
        &mut self,
        prompt: usize,
        scene: &Scene,
        in_flight: usize,
    ) -> Result<Option<RatedMoment>, PlanError> {
        if self.devices() < 2 {
            return Ok(None);
        }
        let steps = self.steps_of(prompt, scene)?;
        let mut prompts = scene.prompts.clone();
        prompts.push(prompt);
        let (mut open, mut own) = (Vec::new(), 0);
        for tokens in &prompts {
            own = open.len();
            self.cut(*tokens, steps.as_ref(), &mut open)?;
        }
        let loads = steps.as_ref().map_or_else(Vec::new, Steps::loads);
        let devices = self.devices();
        let sent = || Sent::new(devices, in_flight, loads.clone());
        let mut before = sent();
        // The prompts before it leave it a place.
        for (at, chunk) in open[..own].iter().enumerate().take(in_flight.saturating_sub(1)) {
            before.next(&chunk.candidates, chunk.rule(), open.len() - at - 1);
        }
        let (moment, next) = (before.moment(open.len() - own - 1), &open[own]);
        let chosen = moment.choose(&next.candidates, Haste::InTurn, |_| true).at;
        let mut all_sent = sent();
        let by_moment = open.iter().enumerate().map(|(at, chunk)| {
            let taken = all_sent.next(&chunk.candidates, chunk.rule(), open.len() - at - 1);
            let candidate = &chunk.candidates[taken];
            PlannedChunk { shape: chunk.shape, route: Arc::clone(&candidate.route) }
        });
        let input = self.input();
        let time = |chunks: Vec<PlannedChunk>| predict_warm(&input, &chunks, in_flight).makespan;
        let candidates = next.candidates.iter().map(|candidate| RatedCandidate {
            end: moment.end_of(candidate, Haste::InTurn),
            all: time(open.iter().map(|chunk| chunk.like(candidate)).collect()),
            candidate: candidate.clone(),
        });
        Ok(Some(RatedMoment {
            rows: next.shape.rows,
            step: steps.as_ref().map(Steps::rated),
            candidates: candidates.collect(),
            chosen,
            all: time(by_moment.collect()),
            bound: lower_bound(&work_of_prompts(&input, &prompts)),
            moment,
        }))
    }

    fn steps_of(&mut self, prompt: usize, scene: &Scene) -> Result<Option<Steps>, PlanError> {
        if scene.streams == 0 {
            return Ok(None);
        }
        let rows = scene.streams;
        let (phase, context) = (Phase::Decode, prompt);
        let shape = ChunkShape { phase, rows, selected: rows, context, prompt: 0 };
        let candidates = self.candidates(shape)?;
        let alone = candidates.iter().map(|it| it.alone).min().unwrap_or_default();
        let gap = scene.token_gap.unwrap_or_else(|| alone.mul_f64(1.0 + STEPS_WAITED));
        let slack = match scene.token_gap {
            Some(gap) => gap.saturating_sub(alone).max(alone),
            None => alone.mul_f64(STEPS_WAITED),
        };
        Ok(Some(Steps { candidates, alone, gap, slack }))
    }

    /// Adds the chunks of a prompt.
    fn cut(
        &mut self,
        prompt: usize,
        steps: Option<&Steps>,
        open: &mut Vec<Open>,
    ) -> Result<(), PlanError> {
        let mut done = 0;
        while done < prompt {
            let most = self.chunk_rows(PromptRows { all: prompt, remaining: prompt - done });
            let mut shape = ChunkShape {
                phase: Phase::Prefill,
                rows: most,
                selected: 1,
                context: done,
                prompt,
            };
            if let Some(steps) = steps {
                shape.rows = rows_between_steps(most, steps.slack.as_nanos() as f64, |rows| {
                    let chunk = self.candidates(ChunkShape { rows, ..shape }).ok()?;
                    wait_of_step(&steps.candidates, &chunk[0])
                });
                shape.rows = shape.rows.max(EFFICIENT_MIN).min(most);
            }
            done += shape.rows;
            shape.selected = usize::from(done == prompt);
            open.push(Open { shape, candidates: self.candidates(shape)? });
        }
        Ok(())
    }
}

impl Open {
    fn rule(&self) -> Rule {
        self.candidates[0].route.rule
    }

    /// The chunk on a route like another one: of the same strategy on the same devices, or at least on these; or that of a chunk alone.
    fn like(&self, other: &Candidate) -> PlannedChunk {
        let all = || self.candidates.iter().filter(|it| it.devices == other.devices);
        let strategy = |it: &Candidate| it.route.reason.split(" (").next().map(str::to_owned);
        let same = all().find(|it| strategy(it) == strategy(other)).or_else(|| all().next());
        let route = Arc::clone(&same.unwrap_or(&self.candidates[0]).route);
        PlannedChunk { shape: self.shape, route }
    }
}

/// The steps of streams.
struct Steps {
    candidates: Arc<[Candidate]>,
    alone: Duration,
    gap: Duration,
    /// How long a step may wait.
    slack: Duration,
}

impl Steps {
    /// The route of a step alone.
    fn fastest(&self) -> &Candidate {
        let fastest = self.candidates.iter().min_by_key(|candidate| candidate.alone);
        fastest.unwrap_or(&self.candidates[0])
    }

    fn loads(&self) -> Vec<StepLoad> {
        let gap = self.gap.as_secs_f64().max(1e-9);
        let load = |lane: &LaneWork| StepLoad {
            share: (lane.time.as_secs_f64() / gap).min(1.0),
            part: lane.mean(),
        };
        self.fastest().lanes.iter().map(load).collect()
    }

    fn rated(&self) -> RatedStep {
        let devices = Arc::clone(&self.fastest().devices);
        RatedStep { devices, alone: self.alone, gap: self.gap }
    }
}
