//! Fits a machine's numbers to measured runs, and predicts strategies that were left out of the fit.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::sync::Arc;

use lapwing_kernels::device::DeviceInfo;
use serde::Serialize;

use super::Machine;
use super::planned::Planned;
use super::run::{Warmth, run_warm};
use crate::compare::Comparison;
use crate::simulate::error::SimulateError;
use crate::simulate::fit::least_squares;
use crate::simulate::scenario::Scenario;
use crate::simulate::simulated::Simulated;
use lapwing_plan::soc::{Number, NumberKind};

mod profiled;

/// What a live engine took with a strategy at a prompt length.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct MeasuredRun {
    /// Name of the strategy.
    pub strategy: String,
    /// Tokens of the prompt.
    pub prompt: usize,
    /// Whether its graphs were prepared before. A strategy that prepares graphs on the spot is measured without them.
    pub is_warm: bool,
    /// Median time to first token, in ms.
    pub ttft_ms: f64,
    /// Mean time per token after the first, in ms; `None` without one.
    pub tpot_ms: Option<f64>,
}

/// A measured time beside the one that was predicted without it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct PredictedTime {
    /// In ms.
    pub measured: f64,
    /// In ms.
    pub predicted: f64,
    /// (predicted − measured) / measured.
    pub error: f64,
}

/// A run of a strategy that was left out of the fit.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct LeftOut {
    /// Name of the strategy.
    pub strategy: String,
    /// Tokens of the prompt.
    pub prompt: usize,
    /// As in [`MeasuredRun`].
    pub is_warm: bool,
    /// Time to first token, in ms.
    pub ttft_ms: PredictedTime,
    /// Time per token after the first, in ms; `None` where none was measured.
    pub tpot_ms: Option<PredictedTime>,
}

/// Measured runs of strategies on a machine, to which its numbers are fitted.
///
/// Two kinds of numbers are fitted: what a hand-over between devices takes, and for each device one factor of its rates of arithmetic
/// and of memory. Strategies decide by the numbers that the live engine predicts with, which stay, so that a simulated run has the routes
/// of the live one. With a [profile](Calibration::with_profile), ops take their measured times, divided by that factor.
#[derive(Clone, Debug)]
pub struct Calibration {
    machine: Machine,
    model: String,
    decode: usize,
    runs: Vec<MeasuredRun>,
    /// What the live engine's planner knows of its devices.
    infos: Vec<DeviceInfo>,
    /// What the live engine plans with.
    planned: Planned,
}

/// Rounds of a fit.
const ROUNDS: usize = 10;

/// Weight of the fit's start, which keeps numbers that no run depends on.
const DAMPING: f64 = 1e-4;

/// A hand-over is at least this share of the one that it was, and at most so many times as long.
const HAND_OVER: RangeInclusive<f64> = 0.02..=100.0;

/// Rates are within this factor of those that they were.
const RATES_MOST: f64 = 20.0;

/// Rates of a device that a fit changes together.
const RATES: [&str; 2] = ["gflops", "gbps"];

impl Calibration {
    /// The runs of a comparison on the devices of `machine`, which has the numbers that the live engine predicts with. `model` is that of
    /// [`Scenario::model`].
    pub fn new(machine: Machine, model: &str, compared: &Comparison) -> Calibration {
        let of_length = |length: &crate::compare::LengthComparison| {
            let prompt = length.tokens;
            let run = move |run: &crate::compare::StrategyRun| MeasuredRun {
                strategy: run.strategy.clone(),
                prompt,
                is_warm: !run.prepares_on_the_spot,
                ttft_ms: run.ttft_ms.median,
                tpot_ms: run.report.requests.tpot_ms.p50,
            };
            length.runs.iter().map(run).collect::<Vec<_>>()
        };
        let runs = compared.lengths.iter().flat_map(of_length).collect();
        let decode = compared.tokens.saturating_sub(1);
        let (model, infos) = (model.to_owned(), compared.infos.clone());
        let planned = Planned::Machine(Arc::new(machine.clone()));
        Calibration { machine, model, decode, runs, infos, planned }
    }

    /// The measured runs.
    pub fn runs(&self) -> &[MeasuredRun] {
        &self.runs
    }

    /// The strategies that were measured, each once.
    pub fn strategies(&self) -> Vec<&str> {
        let mut known = BTreeSet::new();
        let names = self.runs.iter().map(|run| &*run.strategy);
        names.filter(|name| known.insert(*name)).collect()
    }

    /// The machine with its numbers fitted to all runs but those of the strategies `left_out`.
    ///
    /// # Errors
    /// When no run is left to fit to, or a run cannot be simulated.
    pub fn fit(&self, left_out: &[&str]) -> Result<Machine, SimulateError> {
        let runs = self.runs.iter().filter(|run| !left_out.contains(&&*run.strategy));
        let runs: Vec<&MeasuredRun> = runs.collect();
        if runs.is_empty() {
            let reason = "no measured run is left to fit to".to_owned();
            return Err(SimulateError::Run { reason });
        }
        let keys = self.keys();
        let mut changes = vec![0.0; keys.len()];
        let slopes = self.slopes(&runs)?;
        for _ in 0..ROUNDS {
            let machine = self.with(&changes, runs.len())?;
            let errors: Vec<f64> =
                self.errors(&machine, &runs)?.iter().map(|error| -error).collect();
            let more = least_squares::solve(&slopes, &errors, DAMPING);
            for ((key, change), more) in keys.iter().zip(&mut changes).zip(more) {
                *change = key.within(*change + more);
            }
        }
        self.with(&changes, runs.len())
    }

    /// The runs of a strategy, predicted by a machine that was fitted to all runs but those of the strategies `left_out`.
    ///
    /// # Errors
    /// As [`fit`](Calibration::fit).
    pub fn predicted(
        &self,
        strategy: &str,
        left_out: &[&str],
    ) -> Result<Vec<LeftOut>, SimulateError> {
        let machine = self.fit(left_out)?;
        let runs = self.runs.iter().filter(|run| run.strategy == strategy);
        runs.map(|run| self.beside(&machine, run)).collect()
    }

    fn beside(&self, machine: &Machine, run: &MeasuredRun) -> Result<LeftOut, SimulateError> {
        let simulated = self.simulated(machine, run)?;
        let beside = |measured: f64, predicted: f64| PredictedTime {
            measured,
            predicted,
            error: (predicted - measured) / measured,
        };
        let tpot = run.tpot_ms.zip(self.tpot(&simulated));
        Ok(LeftOut {
            strategy: run.strategy.clone(),
            prompt: run.prompt,
            is_warm: run.is_warm,
            ttft_ms: beside(run.ttft_ms, simulated.prefill_ms),
            tpot_ms: tpot.map(|(measured, predicted)| beside(measured, predicted)),
        })
    }

    /// A run on a machine, with the routes of the live engine.
    fn simulated(&self, machine: &Machine, run: &MeasuredRun) -> Result<Simulated, SimulateError> {
        let mut scenario = Scenario::on(machine.clone());
        scenario.own = self.own_devices(machine);
        scenario.planned = Some(self.planned.clone());
        scenario.model.clone_from(&self.model);
        (scenario.prompt, scenario.decode) = (run.prompt, self.decode);
        scenario.set("strategy", &run.strategy)?;
        let warmth = if run.is_warm { Warmth::Warm } else { Warmth::Cold };
        run_warm(&scenario, machine, warmth)
    }

    fn tpot(&self, simulated: &Simulated) -> Option<f64> {
        simulated.decode_ms.map(|ms| ms / self.decode.max(1) as f64)
    }

    /// Logarithm of simulated / measured of each time of the runs.
    fn errors(&self, machine: &Machine, runs: &[&MeasuredRun]) -> Result<Vec<f64>, SimulateError> {
        let mut errors = Vec::new();
        for run in runs {
            let simulated = self.simulated(machine, run)?;
            errors.push((simulated.prefill_ms / run.ttft_ms).ln());
            let tpot = run.tpot_ms.zip(self.tpot(&simulated));
            errors.extend(tpot.map(|(measured, simulated)| (simulated / measured).ln()));
        }
        Ok(errors)
    }

    /// By how much each error grows with the change of each number, from the numbers that the live engine predicts with. Times grow with the
    /// hand-over in proportion, and their logarithms less and less, so that rounds with these slopes come close from below.
    fn slopes(&self, runs: &[&MeasuredRun]) -> Result<Vec<Vec<f64>>, SimulateError> {
        let keys = self.keys();
        let at = |number: Option<usize>| {
            let step = |(at, key): (usize, &Key)| if Some(at) == number { key.step() } else { 0.0 };
            let changes: Vec<f64> = keys.iter().enumerate().map(step).collect();
            self.errors(&self.with(&changes, runs.len())?, runs)
        };
        let base = at(None)?;
        let mut slopes = vec![vec![0.0; keys.len()]; base.len()];
        for (number, key) in keys.iter().enumerate() {
            for ((row, more), base) in slopes.iter_mut().zip(at(Some(number))?).zip(&base) {
                row[number] = (more - base) / key.step();
            }
        }
        Ok(slopes)
    }

    fn keys(&self) -> Vec<Key> {
        let devices = 0..self.machine.device.len();
        std::iter::once(Key::HandOver).chain(devices.map(Key::Rates)).collect()
    }

    /// The machine with changed numbers, one change for each of [`keys`](Calibration::keys).
    fn with(&self, changes: &[f64], runs: usize) -> Result<Machine, SimulateError> {
        let mut machine = self.machine.clone();
        let source = format!("fitted to {runs} measured runs of {}", self.model);
        let fit = |number: &mut Number, factor: f64| {
            number.value *= factor;
            (number.kind, number.source) = (NumberKind::Pinned, source.clone());
        };
        for (key, change) in self.keys().into_iter().zip(changes) {
            match key {
                Key::HandOver => fit(&mut machine.hand_over, 1.0 + change),
                Key::Rates(device) => {
                    let numbers = &mut machine.device[device].numbers;
                    let rates = numbers.iter_mut().filter(|(key, _)| RATES.contains(&key.as_str()));
                    rates.for_each(|(_, number)| fit(number, change.exp()));
                }
            }
        }
        machine.check()?;
        Ok(machine)
    }
}

/// What is fitted.
#[derive(Clone, Copy, Debug)]
enum Key {
    /// The hand-over; its change is a share of it.
    HandOver,
    /// The rates of the device in this place; their change is the logarithm of a factor.
    Rates(usize),
}

impl Key {
    fn step(self) -> f64 {
        match self {
            Key::HandOver => 1.0,
            Key::Rates(_) => 0.05,
        }
    }

    /// The change, no greater than it may be.
    fn within(self, change: f64) -> f64 {
        match self {
            Key::HandOver => change.clamp(HAND_OVER.start() - 1.0, HAND_OVER.end() - 1.0),
            Key::Rates(_) => change.clamp(-RATES_MOST.ln(), RATES_MOST.ln()),
        }
    }
}

#[cfg(test)]
mod tests;
