//! Measures the strategies that are compared.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::time::Duration;

use lapwing_actors::RunError;
use lapwing_actors::message::Shutdown;
use lapwing_traces::{
    Analysis, Recorder, RecorderConfig, Recording, Report, Scope, Spread, Timeline,
};

use super::request::{Measured, Run, one, prompt_ids};
use super::{Candidate, Compare, Comparison, LengthComparison, Progress, StrategyRun};
use crate::engine::Engine;
use crate::error::Error;

/// All repetitions of one strategy at one length.
struct Runs {
    reason: String,
    chunks: usize,
    predicted: Option<Duration>,
    predicted_cold: Option<Duration>,
    runs: Vec<Run>,
}

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
    /// Strategy and length of the latest measured run of the present engine.
    latest: Option<(usize, usize)>,
}

struct Facts {
    model: String,
    devices: Vec<String>,
    isa: String,
    cost_source: String,
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
        (self.progress)(&Progress { done, all, strategy, tokens });
    }

    /// Runs one round of a strategy: builds an engine and measures each length.
    async fn candidate(&mut self, at: usize, repetitions: usize, each: usize) -> Result<(), Error> {
        let compare = self.compare;
        let candidate = &compare.candidates[at];
        self.report_progress(candidate, 0);
        let longest = compare.lengths.iter().max().copied().unwrap_or(1);
        let recorder = Recorder::new(Arc::clone(&compare.clock), RecorderConfig::default());
        recorder.set_scope(Scope::Marked);
        self.latest = None;
        let builder = candidate.builder(&compare.builder);
        let builder = builder.context(longest + compare.tokens).recorder(recorder.clone());
        let engine = match builder.build().await {
            Ok(engine) => engine,
            Err(error) if error.plan_error().is_some() => {
                self.absent.insert(at, error.to_string());
                self.all -= each;
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        self.facts.get_or_insert_with(|| Facts::of(&engine));
        for (number, length) in compare.lengths.iter().enumerate() {
            let measured = self.length((at, number), *length, (&engine, repetitions)).await;
            match measured {
                Ok(()) => {}
                Err(error) if error.plan_error().is_some() || cannot_run(&error) => {
                    self.absent.insert(at, error.to_string());
                    break;
                }
                Err(error) => return Err(error),
            }
        }
        engine.shutdown(Shutdown::Drain).await?;
        // Every actor has ended, and so has recorded all of its events.
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

    async fn length(
        &mut self,
        key: (usize, usize),
        length: usize,
        (engine, repetitions): (&Engine, usize),
    ) -> Result<(), Error> {
        let compare = self.compare;
        if let Ok(explained) = engine.explain(length) {
            self.choices.entry(key.1).or_insert_with(|| explained.winner().strategy.clone());
        }
        if let Entry::Vacant(runs) = self.runs.entry(key) {
            let plan = engine.plan(length)?;
            runs.insert(Runs {
                reason: plan.first().map_or_else(String::new, |chunk| chunk.reason.clone()),
                chunks: plan.len(),
                predicted: engine.predict(length)?,
                predicted_cold: engine.predict_cold(length)?,
                runs: Vec::new(),
            });
        }
        for repetition in 0..=repetitions {
            self.report_progress(&compare.candidates[key.0], length);
            let before = self.runs.get(&key).map_or(0, |runs| runs.runs.len());
            let ids = prompt_ids(engine, length, before as u64);
            let measured = one(engine, ids, (compare.tokens, repetition > 0)).await?;
            if let Some(Measured { run, late_events }) = measured {
                self.add_late(late_events);
                if let Some(runs) = self.runs.get_mut(&key) {
                    runs.runs.push(run);
                    self.latest = Some(key);
                }
            }
            self.done += 1;
        }
        Ok(())
    }

    fn comparison(mut self) -> Result<Comparison, Error> {
        let compare = self.compare;
        let mut lengths = Vec::new();
        for (number, tokens) in compare.lengths.iter().enumerate() {
            let mut length = LengthComparison {
                tokens: *tokens,
                runs: Vec::new(),
                absent: Vec::new(),
                fastest: 0,
                chosen_by_auto: self.choices.get(&number).cloned(),
                same_tokens: true,
            };
            for (at, candidate) in compare.candidates.iter().enumerate() {
                let runs = self.runs.remove(&(at, number)).filter(|runs| !runs.runs.is_empty());
                match (runs, self.absent.get(&at)) {
                    (Some(runs), _) => length.runs.push(of(candidate, runs)),
                    (None, Some(reason)) => {
                        length.absent.push((candidate.name().to_owned(), reason.clone()));
                    }
                    (None, None) => {}
                }
            }
            let times = length.runs.iter().map(|run| run.ttft_ms.median).enumerate();
            length.fastest = times.min_by(|a, b| a.1.total_cmp(&b.1)).map_or(0, |(at, _)| at);
            length.same_tokens = length.runs.iter().all(|run| run.ids == length.runs[0].ids);
            lengths.push(length);
        }
        let facts = self.facts.take().filter(|_| lengths.iter().all(|l| !l.runs.is_empty()));
        let Some(Facts { model, devices, isa, cost_source }) = facts else {
            let reasons: Vec<String> = self.absent.into_values().collect();
            let found = format!("none that is possible on these devices ({})", reasons.join("; "));
            return Err(Error::config("strategies", found, "at least one that is possible"));
        };
        let (tokens, repetitions) = (compare.tokens, compare.repetitions);
        Ok(Comparison { model, devices, isa, tokens, repetitions, cost_source, lengths })
    }
}

impl Facts {
    fn of(engine: &Engine) -> Facts {
        let name = engine.model_path().file_stem();
        Facts {
            model: name.map_or_else(String::new, |name| name.to_string_lossy().into_owned()),
            devices: engine.devices().iter().map(ToString::to_string).collect(),
            isa: engine.isa().to_owned(),
            cost_source: engine.cost_source(),
        }
    }
}

/// Whether the devices cannot run the strategy, for example because its graphs exceed the budget.
fn cannot_run(error: &Error) -> bool {
    matches!(error.run_error(), Some(RunError::Device { .. }))
}

fn of(candidate: &Candidate, runs: Runs) -> StrategyRun {
    let Runs { reason, chunks, predicted, predicted_cold, runs } = runs;
    let times: Vec<f64> = runs.iter().map(|run| run.ttft_ms).collect();
    let late = runs.iter().map(|run| run.late).sum::<Duration>() / runs.len().max(1) as u32;
    let mut order: Vec<usize> = (0..runs.len()).collect();
    order.sort_by(|a, b| times[*a].total_cmp(&times[*b]));
    let median = &runs[order[(order.len() - 1) / 2]];
    let mut recording = median.recording.clone();
    recording.meta.insert("strategy".to_owned(), candidate.name().to_owned());
    let timeline = Timeline::new(&recording);
    let analysis = Analysis::new(&timeline);
    let report = Report::new(&timeline, &analysis);
    let none = Spread { median: f64::NAN, min: f64::NAN, max: f64::NAN };
    StrategyRun {
        strategy: candidate.name().to_owned(),
        reason,
        chunks,
        ttft_ms: Spread::of(&times).unwrap_or(none),
        predicted,
        predicted_cold,
        ids: runs[0].ids.clone(),
        late,
        timeline,
        analysis,
        report,
    }
}
