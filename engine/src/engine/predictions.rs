//! Routes and predicted times of prompts and decode steps, without running them.

use std::collections::HashSet;
use std::time::Duration;

use lapwing_kernels::device::GraphKey;
use lapwing_plan::moment::{RatedMoment, Scene, arithmetic_classes};
pub use lapwing_plan::pace::BesideStream;
use lapwing_plan::planner::Planner;
use lapwing_plan::predict::{
    ChunksWithGraphs, PlannedChunk, Workload, alone, plan, predict, predict_cold, predict_warm,
};
use lapwing_plan::strategy::{ChunkShape, Explanation};
use lapwing_plan::{DeviceId, Phase};

use super::Engine;
#[cfg(doc)]
use super::EngineBuilder;
use crate::error::Error;
use crate::placement::Placement;

/// The prepared graphs of a prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PromptGraphs {
    /// Graphs that it needs.
    pub needed: usize,
    /// Graphs among them that were ready at the start of the engine.
    pub ready: usize,
    /// Time in which the start has read graphs from disk, those of other prompts included.
    pub read: Duration,
    /// Predicted time to read the others from disk or to make them.
    pub prepare: Duration,
    /// Whether the prompt waits for them. Otherwise other devices compute it meanwhile.
    pub waits: bool,
}

impl Engine {
    /// Chunks of a prompt of `length` tokens, each with the devices that would run its parts.
    ///
    /// # Errors
    /// When the length is 0 or exceeds the context, or the strategy finds no route for it.
    pub fn plan(&self, length: usize) -> Result<Vec<Placement>, Error> {
        let chunks = self.chunks(length)?;
        let explainer = &self.inner.explainer;
        Ok(chunks.iter().map(|chunk| explainer.placement(&chunk.route, chunk.shape)).collect())
    }

    /// Predicted time of a prompt of `length` tokens alone in the engine, from the start of its first
    /// op to the end of its last. `None` if the route uses a device whose times are unknown. Assumes a
    /// warm engine: every graph that the prompt needs is already prepared.
    /// # Errors
    /// As [`plan`](Engine::plan).
    pub fn predict(&self, length: usize) -> Result<Option<Duration>, Error> {
        let chunks = self.chunks(length)?;
        let explainer = &self.inner.explainer;
        let known = chunks.iter().all(|chunk| explainer.knows_times(&chunk.route));
        let input = explainer.parts.input();
        let makespan = || predict_warm(&input, &chunks, self.inner.permits).makespan;
        Ok(known.then(makespan))
    }

    /// As [`predict`](Engine::predict), with no graph prepared: the time of the first prompt of that
    /// length in an engine for which nothing was prepared. Other devices compute it, or it waits for its graphs
    /// ([`wait_for_graphs`](EngineBuilder::wait_for_graphs)).
    ///
    /// # Errors
    /// As [`plan`](Engine::plan).
    pub fn predict_cold(&self, length: usize) -> Result<Option<Duration>, Error> {
        self.predict_with(length, &HashSet::new())
    }

    /// As [`predict`](Engine::predict), with the graphs that the start of this engine has read from disk: the time of its
    /// first prompt, if it has that length.
    ///
    /// # Errors
    /// As [`plan`](Engine::plan).
    pub fn predict_first(&self, length: usize) -> Result<Option<Duration>, Error> {
        self.predict_with(length, &self.inner.explainer.read_graphs.ready)
    }

    /// The graphs that a prompt of `length` tokens needs.
    ///
    /// # Errors
    /// As [`plan`](Engine::plan).
    pub fn graphs_of(&self, length: usize) -> Result<PromptGraphs, Error> {
        let (chunks, read) = (self.chunks(length)?, &self.inner.explainer.read_graphs);
        let needed: HashSet<&(DeviceId, GraphKey)> =
            chunks.iter().flat_map(|chunk| &chunk.route.graphs).collect();
        let missing = needed.iter().filter(|graph| !read.ready.contains(**graph));
        let cost = &self.inner.explainer.parts.cost;
        let prepare = missing.clone().map(|(device, key)| cost.prepare_time(*device, key)).sum();
        let needed_count = needed.len();
        Ok(PromptGraphs {
            needed: needed_count,
            ready: needed_count - missing.count(),
            read: read.time,
            prepare,
            waits: self.inner.explainer.meanwhile.is_none(),
        })
    }

    /// A prompt of `length` tokens beside a stream with that target for its gaps between tokens, or without one: the rows of its
    /// chunks, how long the stream waits for a token, and the time of the prompt. `None` if the route uses a device whose
    /// times are unknown.
    ///
    /// # Errors
    /// As [`plan`](Engine::plan).
    pub fn predict_beside_stream(
        &self,
        length: usize,
        token_gap: Option<Duration>,
    ) -> Result<Option<BesideStream>, Error> {
        let chunks = self.chunks(length)?;
        let explainer = &self.inner.explainer;
        let known = chunks.iter().all(|chunk| explainer.knows_times(&chunk.route));
        let mut planner = Planner::new(explainer.parts.clone());
        Ok(known.then(|| planner.beside_stream(length, token_gap)).flatten())
    }

    /// The routes of the first chunk of a prompt of `length` tokens that arrives beside the streams and prompts of a moment: when it ends on
    /// each of them, and what all prompts take, beside the least time of any routes on these devices. `None` with one device, which leaves
    /// no choice, and if the times of a device are unknown.
    ///
    /// # Errors
    /// As [`plan`](Engine::plan).
    pub fn explain_moment(
        &self,
        length: usize,
        scene: &Scene,
    ) -> Result<Option<RatedMoment>, Error> {
        let chunks = self.chunks(length)?;
        scene.prompts.iter().try_for_each(|prompt| self.check_length(*prompt))?;
        let explainer = &self.inner.explainer;
        let known = chunks.iter().all(|chunk| explainer.knows_times(&chunk.route));
        if !known {
            return Ok(None);
        }
        let mut planner = Planner::new(explainer.parts.clone());
        Ok(planner.rate_moment(length, scene, self.inner.permits)?)
    }

    /// Names of the devices that give the same bits, class by class: within a class, answers do not depend on where chunks are computed.
    pub fn arithmetic_classes(&self) -> Vec<Vec<String>> {
        let devices = &self.inner.explainer.parts.devices;
        let name = |device: &DeviceId| devices[device.0].name.clone();
        let classes = arithmetic_classes(devices);
        classes.iter().map(|class| class.iter().map(name).collect()).collect()
    }

    /// Predicted time with these graphs prepared.
    fn predict_with(
        &self,
        length: usize,
        ready: &HashSet<(DeviceId, GraphKey)>,
    ) -> Result<Option<Duration>, Error> {
        let explainer = &self.inner.explainer;
        let input = explainer.parts.input();
        let chunks = match &explainer.meanwhile {
            None => self.chunks(length)?,
            Some(meanwhile) => {
                let first = ChunksWithGraphs { ready, meanwhile: &**meanwhile };
                self.check_length(length)?;
                first.chunks(&*explainer.parts.strategy, &input, length)?
            }
        };
        let known = chunks.iter().all(|chunk| explainer.knows_times(&chunk.route));
        let makespan = || match explainer.meanwhile.is_some() {
            true => predict(&input, &chunks, self.inner.permits).makespan,
            false => predict_cold(&input, ready, &chunks, self.inner.permits).makespan,
        };
        Ok(known.then(makespan))
    }

    /// Predicted time of every strategy that the engine knows by name
    /// ([`EngineBuilder::strategies`]) for a prompt of `length` tokens, with this engine's options and
    /// placements, and the strategy that `auto` chooses.
    ///
    /// # Errors
    /// As [`plan`](Engine::plan).
    pub fn explain(&self, length: usize) -> Result<Explanation, Error> {
        self.check_length(length)?;
        let parts = &self.inner.explainer.parts;
        Ok(self.inner.strategies.decider().explain_prompt(&parts.input(), length, 0)?)
    }

    fn check_length(&self, length: usize) -> Result<(), Error> {
        let most = self.inner.context;
        match (1..=most).contains(&length) {
            true => Ok(()),
            false => Err(Error::config("length", length, &format!("between 1 and {most}"))),
        }
    }

    pub(super) fn chunks(&self, prompt: usize) -> Result<Vec<PlannedChunk>, Error> {
        self.check_length(prompt)?;
        let parts = &self.inner.explainer.parts;
        let work = Workload { prompt, context: 0, in_flight: self.inner.permits };
        Ok(plan(&*parts.strategy, &parts.input(), work)?)
    }

    /// Devices that would run a decode step of `sequences` sequences, of which the longest has
    /// `context` tokens, and its predicted time if their speeds are known.
    ///
    /// # Errors
    /// When the engine cannot run so many sequences at the same time, the context is longer than the
    /// engine's, or the strategy finds no route.
    pub fn plan_decode(&self, sequences: usize, context: usize) -> Result<Placement, Error> {
        let (rows_max, most) = (self.inner.sequences_max, self.inner.context);
        if !(1..=rows_max).contains(&sequences) {
            return Err(Error::config(
                "sequences",
                sequences,
                &format!("between 1 and {rows_max}"),
            ));
        }
        if context > most {
            return Err(Error::config("context", context, &format!("at most {most}")));
        }
        let (rows, selected) = (sequences, sequences);
        let shape = ChunkShape { phase: Phase::Decode, rows, selected, context, prompt: 0 };
        let explainer = &self.inner.explainer;
        let route = explainer.parts.strategy.route(&explainer.parts.input(), &shape)?;
        let placement = explainer.placement(&route, shape);
        let known = explainer.knows_times(&route);
        let time = known.then(|| alone(&explainer.parts.input(), &shape, &route).makespan);
        Ok(Placement { predicted: time.or(placement.predicted), ..placement })
    }
}
