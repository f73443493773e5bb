//! Fits a machine's numbers to measured runs, and predicts strategies that were left out of the fit.

use std::collections::BTreeSet;

use serde::Serialize;

use super::Machine;
use super::run::{Warmth, run_warm};
use crate::compare::Comparison;
use crate::simulate::error::SimulateError;
use crate::simulate::fit::least_squares;
use crate::simulate::scenario::Scenario;
use crate::simulate::simulated::Simulated;
use lapwing_plan::soc::{Number, NumberKind};

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
/// Three kinds of numbers are fitted: what a hand-over between devices takes, and for each device one factor of its rates of arithmetic
/// and of memory. Strategies decide by the numbers that the live engine predicts with, which stay, so that a simulated run has the routes
/// of the live one.
#[derive(Clone, Debug)]
pub struct Calibration {
    machine: Machine,
    model: String,
    decode: usize,
    runs: Vec<MeasuredRun>,
}

/// Rounds of a fit, and the relative step of its slopes.
const ROUNDS: usize = 4;
const STEP: f64 = 0.05;

/// Weight of the fit's start, which keeps numbers that no run depends on.
const DAMPING: f64 = 1e-4;

/// A fitted number is within this factor of the one that it had.
const FACTOR_MOST: f64 = 50.0;

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
        Calibration { machine, model: model.to_owned(), decode, runs }
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
        let mut logs = vec![0.0; keys.len()];
        let slopes = self.slopes(&runs)?;
        for _ in 0..ROUNDS {
            let machine = self.with(&keys, &logs, runs.len())?;
            let errors: Vec<f64> =
                self.errors(&machine, &runs)?.iter().map(|error| -error).collect();
            let change = least_squares::solve(&slopes, &errors, DAMPING);
            let most = FACTOR_MOST.ln();
            logs.iter_mut().zip(change).for_each(|(log, by)| *log = (*log + by).clamp(-most, most));
        }
        self.with(&keys, &logs, runs.len())
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
        scenario.planned = Some(self.machine.clone());
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

    /// By how much each error grows with the logarithm of each number: from the numbers that the live engine predicts with.
    fn slopes(&self, runs: &[&MeasuredRun]) -> Result<Vec<Vec<f64>>, SimulateError> {
        let keys = self.keys();
        let at = |number: Option<usize>| {
            let logs: Vec<f64> =
                (0..keys.len()).map(|of| if Some(of) == number { STEP } else { 0.0 }).collect();
            self.errors(&self.with(&keys, &logs, runs.len())?, runs)
        };
        let base = at(None)?;
        let mut slopes = vec![vec![0.0; keys.len()]; base.len()];
        for number in 0..keys.len() {
            for ((row, more), base) in slopes.iter_mut().zip(at(Some(number))?).zip(&base) {
                row[number] = (more - base) / STEP;
            }
        }
        Ok(slopes)
    }

    /// What is fitted: the hand-over, and the devices by their places.
    fn keys(&self) -> Vec<Option<usize>> {
        std::iter::once(None).chain((0..self.machine.device.len()).map(Some)).collect()
    }

    /// The machine with the fitted numbers multiplied by the exponentials of `logs`.
    fn with(
        &self,
        keys: &[Option<usize>],
        logs: &[f64],
        runs: usize,
    ) -> Result<Machine, SimulateError> {
        let mut machine = self.machine.clone();
        let source = format!("fitted to {runs} measured runs of {}", self.model);
        let fit = |number: &mut Number, log: f64| {
            number.value *= log.exp();
            (number.kind, number.source) = (NumberKind::Pinned, source.clone());
        };
        for (key, log) in keys.iter().zip(logs) {
            match key {
                None => fit(&mut machine.hand_over, *log),
                Some(device) => {
                    let numbers = &mut machine.device[*device].numbers;
                    let rates = numbers.iter_mut().filter(|(key, _)| RATES.contains(&key.as_str()));
                    rates.for_each(|(_, number)| fit(number, *log));
                }
            }
        }
        machine.check()?;
        Ok(machine)
    }
}

#[cfg(test)]
mod tests;
