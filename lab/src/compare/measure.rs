//! Measures the strategies that are compared.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use lapwing_actors::RunError;
use lapwing_actors::message::Shutdown;
use lapwing_traces::{OsClock, Recorder, RecorderConfig, Recording, Scope};

use super::estimate::Estimate;
use super::request::{Measured, one, prompt_ids};
use super::{Candidate, Compare, Comparison, Progress};
use lapwing_engine::Engine;
use lapwing_engine::error::Error;

mod runs;
mod summary;

use runs::Runs;
use summary::Facts;

/// Most further prompts of a length to warm up.
const WARM_UPS_MAX: u64 = 3;

/// The state of a comparison in progress.
struct Measuring<'a, F> {
    compare: &'a Compare,
    progress: F,
    done: usize,
    all: usize,
    /// Runs by strategy and length.
    runs: HashMap<(usize, usize), Runs>,
    /// Why a strategy is impossible, by strategy.
    absent: HashMap<usize, String>,
    /// The choice of `auto`, by length.
    choices: HashMap<usize, String>,
    /// Settings that all engines share.
    facts: Option<Facts>,
    estimate: Estimate<OsClock>,
    /// Runs of each strategy at each length, unmeasured ones included.
    runs_each: usize,
    /// Strategy and length of the latest measured run of the present engine.
    latest: Option<(usize, usize)>,
}

pub(super) async fn run(
    mut compare: Compare,
    progress: impl FnMut(&Progress) + Send,
) -> Result<Comparison, Error> {
    if compare.candidates.is_empty() {
        compare = compare.all_strategies();
    }
    if compare.lengths.is_empty() || compare.lengths.contains(&0) {
        return Err(Error::config("lengths", "0", "at least one, each of at least 1 token"));
    }
    let second = compare.repetitions / 2;
    let rounds = [compare.repetitions - second, second];
    let warm: usize = rounds.iter().filter(|round| **round > 0).count();
    let each = compare.lengths.len() * (compare.repetitions + warm);
    let mut measuring = Measuring {
        compare: &compare,
        progress,
        done: 0,
        all: compare.candidates.len() * each,
        runs: HashMap::new(),
        absent: HashMap::new(),
        choices: HashMap::new(),
        facts: None,
        estimate: Estimate::new(OsClock::start()),
        runs_each: compare.repetitions + warm,
        latest: None,
    };
    let forward: Vec<usize> = (0..compare.candidates.len()).collect();
    let reverse: Vec<usize> = forward.iter().rev().copied().collect();
    for (order, repetitions) in [(forward, rounds[0]), (reverse, rounds[1])] {
        for candidate in order {
            if repetitions > 0 && !measuring.absent.contains_key(&candidate) {
                measuring.candidate(candidate, repetitions, each).await?;
            }
        }
    }
    measuring.comparison()
}

impl<F: FnMut(&Progress) + Send> Measuring<'_, F> {
    fn report_progress(&mut self, candidate: &Candidate, tokens: usize) {
        let (done, all, strategy) = (self.done, self.all, candidate.name().to_owned());
        let left = self.estimate.left();
        (self.progress)(&Progress { done, all, strategy, tokens, left });
    }

    /// Predicts the times of all runs, with the first engine.
    fn predict(&mut self, engine: &Engine) {
        for (number, length) in self.compare.lengths.iter().enumerate() {
            let Ok(explained) = engine.explain(*length) else { continue };
            let rated = |name: &str| match name {
                "auto" => explained.winner().makespan(),
                _ => explained.rated.iter().find(|rated| rated.strategy == name)?.makespan(),
            };
            let candidates = self.compare.candidates.iter();
            let times: Vec<_> = candidates.map(|candidate| rated(candidate.name())).collect();
            self.estimate.expect(number, &times, self.runs_each);
        }
    }

    /// Runs one round of a strategy: builds an engine and measures each length. Lengths at which graphs
    /// are prepared on the spot are measured afterwards, each run in a new engine.
    async fn candidate(&mut self, at: usize, repetitions: usize, each: usize) -> Result<(), Error> {
        let compare = self.compare;
        self.report_progress(&compare.candidates[at], 0);
        let engine = match self.engine(at).await {
            Ok(engine) => engine,
            Err(error) if error.plan_error().is_some() => {
                self.absent.insert(at, error.to_string());
                self.estimate.absent(at);
                self.all -= each;
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        if self.facts.is_none() {
            self.predict(&engine);
            self.facts = Some(Facts::of(&engine));
        }
        let mut unprepared = Vec::new();
        for (number, length) in compare.lengths.iter().enumerate() {
            let key = (at, number);
            let measured = match self.planned(key, *length, &engine) {
                Ok(true) => {
                    unprepared.push((key, *length));
                    Ok(())
                }
                Ok(false) => self.length(key, *length, &engine, repetitions).await,
                Err(error) => Err(error),
            };
            if !self.continues(at, measured)? {
                break;
            }
        }
        self.end(engine).await?;
        for (key, length) in unprepared {
            let measured = self.in_new_engines(key, length, repetitions).await;
            if !self.continues(at, measured)? {
                break;
            }
        }
        Ok(())
    }

    /// An engine with this strategy.
    async fn engine(&mut self, at: usize) -> Result<Engine, Error> {
        let compare = self.compare;
        self.latest = None;
        let longest = compare.lengths.iter().max().copied().unwrap_or(1);
        let recorder = Recorder::new(Arc::clone(&compare.clock), RecorderConfig::default());
        recorder.set_scope(Scope::Marked);
        let builder = compare.candidates[at].builder(&compare.builder);
        // The strategy itself is measured, so requests wait for its graphs.
        let builder = builder.context(longest + compare.tokens).wait_for_graphs(true);
        builder.recorder(recorder).build().await
    }

    /// Ends an engine. Then every actor has recorded all of its events.
    async fn end(&mut self, engine: Engine) -> Result<(), Error> {
        let recorder = engine.recorder().clone();
        engine.shutdown(Shutdown::Drain).await?;
        self.add_late(recorder.take());
        Ok(())
    }

    /// Adds events to the recording of the latest measured run.
    fn add_late(&mut self, events: Recording) {
        let runs = self.latest.and_then(|key| self.runs.get_mut(&key));
        if let Some(run) = runs.and_then(|runs| runs.runs.last_mut()) {
            run.recording.append(events);
        }
    }

    /// Keeps a measured run; events that came late belong to the run before.
    fn keep(&mut self, key: (usize, usize), measured: Option<Measured>) {
        let Some(Measured { run, late_events }) = measured else { return };
        self.add_late(late_events);
        if let Some(runs) = self.runs.get_mut(&key) {
            runs.runs.push(run);
            self.latest = Some(key);
        }
    }

    /// Whether the strategy's next length is measured: not if the devices cannot run the strategy.
    fn continues(&mut self, at: usize, measured: Result<(), Error>) -> Result<bool, Error> {
        match measured {
            Ok(()) => Ok(true),
            Err(error) if error.plan_error().is_some() || cannot_run(&error) => {
                self.absent.insert(at, error.to_string());
                self.estimate.absent(at);
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// Plans and predicts a length; whether its runs prepare graphs on the spot.
    fn planned(
        &mut self,
        key: (usize, usize),
        length: usize,
        engine: &Engine,
    ) -> Result<bool, Error> {
        if let Ok(explained) = engine.explain(length) {
            self.choices.entry(key.1).or_insert_with(|| explained.winner().strategy.clone());
        }
        let runs = match self.runs.entry(key) {
            Entry::Occupied(runs) => runs.into_mut(),
            Entry::Vacant(runs) => runs.insert(Runs::planned(engine, length)?),
        };
        Ok(runs.on_the_spot)
    }

    async fn length(
        &mut self,
        key: (usize, usize),
        length: usize,
        engine: &Engine,
        repetitions: usize,
    ) -> Result<(), Error> {
        let compare = self.compare;
        for repetition in 0..=repetitions {
            self.report_progress(&compare.candidates[key.0], length);
            let before = self.runs.get(&key).map_or(0, |runs| runs.runs.len());
            let ids = prompt_ids(engine, length, before as u64);
            let measured = one(engine, ids, compare.tokens, repetition > 0).await?;
            self.keep(key, measured);
            if repetition == 0 {
                self.warm(length, engine).await?;
            }
            self.done += 1;
            self.estimate.ended(key);
        }
        Ok(())
    }

    /// Runs prompts until their chunks lack no graphs of any route.
    async fn warm(&self, length: usize, engine: &Engine) -> Result<(), Error> {
        for again in 0..WARM_UPS_MAX {
            if !engine.graphs_made().await? {
                break;
            }
            let ids = prompt_ids(engine, length, u64::from(u32::MAX) - again);
            one(engine, ids, self.compare.tokens, false).await?;
        }
        Ok(())
    }

    /// Measures each run in an engine that has not run a prompt of that length, so that the run
    /// prepares its graphs. A prompt with other graphs warms the engine.
    async fn in_new_engines(
        &mut self,
        key: (usize, usize),
        length: usize,
        repetitions: usize,
    ) -> Result<(), Error> {
        let compare = self.compare;
        self.done += 1;
        self.estimate.ended(key);
        for _ in 0..repetitions {
            self.report_progress(&compare.candidates[key.0], length);
            let engine = self.engine(key.0).await?;
            let before = self.runs.get(&key).map_or(0, |runs| runs.runs.len()) as u64;
            if let Some(other) = engine.warm_up_length(length, compare.tokens)? {
                let ids = prompt_ids(&engine, other, before);
                one(&engine, ids, compare.tokens, false).await?;
            }
            let ids = prompt_ids(&engine, length, before);
            let measured = one(&engine, ids, compare.tokens, true).await?;
            self.keep(key, measured);
            self.end(engine).await?;
            self.done += 1;
            self.estimate.ended(key);
        }
        Ok(())
    }
}

/// Whether the devices cannot run the strategy, for example because its graphs exceed the budget.
fn cannot_run(error: &Error) -> bool {
    matches!(error.run_error(), Some(RunError::Device { .. }))
}
