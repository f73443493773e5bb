//! Strategies that are predicted by a preset which was fitted to the others, beside what a live engine took with them.

use std::path::Path;

use lapwing_engine::Engine;
use lapwing_engine::devices::DeviceSpec;
use lapwing_engine::plan::choices;
use lapwing_engine::profile::Profile;
use lapwing_lab::compare::Compare;
use lapwing_lab::simulate::{Calibration, LeftOut, Machine, PredictedTime};
use serde::Serialize;

use crate::cli::DeviceArgs;
use crate::cli::failure::Failure;
use crate::cli::session::Session;
use crate::cli::table::{Align, table};
use crate::commands::bench::progress::ProgressShown;

/// What is measured, and which strategies the fit does not see.
pub(super) struct LeaveOut<'a> {
    pub(super) model: &'a Path,
    pub(super) devices: Vec<DeviceSpec>,
    pub(super) profile: Option<&'a Path>,
    /// Names, or `each`.
    pub(super) strategies: &'a str,
    pub(super) lengths: &'a [usize],
    pub(super) tokens: usize,
    pub(super) repetitions: usize,
}

/// Predicted and measured runs, and the numbers of the fit.
#[derive(Serialize)]
pub(super) struct Report {
    /// Median of the absolute errors of all times.
    median_error: Option<f64>,
    fitted: Vec<FittedNumber>,
    runs: Vec<LeftOut>,
}

#[derive(Serialize)]
struct FittedNumber {
    key: String,
    before: f64,
    value: f64,
    unit: String,
}

const EACH: &str = "each";

impl LeaveOut<'_> {
    /// The names of the strategies; empty for each in turn.
    fn names(&self) -> Result<Vec<String>, Failure> {
        let mut names = choices(self.strategies);
        names.retain(|name| !name.is_empty());
        if names.is_empty() || names.iter().any(|name| name == EACH) {
            return Ok(Vec::new());
        }
        names.iter().try_for_each(|name| DeviceArgs::check_strategy(name))?;
        Ok(names)
    }

    /// Measures every strategy, and fits the machine: without the strategies that are left out, or to all if that is each in turn.
    pub(super) async fn run(
        self,
        machine: Machine,
        session: &Session,
    ) -> Result<(Machine, Report), Failure> {
        let names = self.names()?;
        let mut builder = Engine::builder().model(self.model);
        for spec in self.devices.iter().cloned() {
            builder = builder.device(spec);
        }
        let profile = self.profile.map(Profile::load).transpose();
        let profile = profile.map_err(|error| Failure::failed(error.to_string()))?;
        let builder = match &profile {
            None => builder,
            Some(profile) => builder.profile(profile.clone()),
        };
        let compare = Compare::new(builder)
            .all_strategies()
            .lengths(self.lengths.iter().copied())
            .tokens(self.tokens)
            .repetitions(self.repetitions);
        let mut shown = ProgressShown::new(session);
        let compared = compare.run(|progress| shown.show(progress)).await?;
        shown.end();
        session.note("fitting the preset, and predicting the strategies that are left out");
        let model = self.model.display().to_string();
        let predicted = tokio::task::spawn_blocking(move || {
            let calibration = Calibration::new(machine.clone(), &model, &compared);
            let calibration = match &profile {
                None => calibration,
                Some(profile) => calibration.with_profile(profile)?,
            };
            report(&machine, &calibration, &names)
        });
        predicted.await.map_err(|error| Failure::failed(format!("the fit ended: {error}")))?
    }
}

fn report(
    machine: &Machine,
    calibration: &Calibration,
    names: &[String],
) -> Result<(Machine, Report), Failure> {
    let measured = calibration.strategies();
    let left_out: Vec<&str> = names.iter().map(String::as_str).collect();
    if let Some(absent) = left_out.iter().find(|name| !measured.contains(name)) {
        return Err(Failure::failed(format!(
            "'{absent}' was not measured: these devices cannot run it"
        )));
    }
    let each = if left_out.is_empty() { &measured } else { &left_out };
    let mut runs = Vec::new();
    for name in each {
        let others: Vec<&str> = if names.is_empty() { vec![name] } else { left_out.clone() };
        runs.extend(calibration.predicted(name, &others)?);
    }
    let fitted = calibration.fit(&left_out)?;
    let numbers = machine.numbers().into_iter().zip(fitted.numbers());
    let changed = numbers.filter(|((_, before), (_, after))| before.value != after.value);
    let numbers = changed.map(|((key, before), (_, after))| FittedNumber {
        key,
        before: before.value,
        value: after.value,
        unit: after.unit.clone(),
    });
    let numbers = numbers.collect();
    let median_error = median(&runs);
    Ok((fitted, Report { median_error, fitted: numbers, runs }))
}

/// Median of the absolute errors of all times.
fn median(runs: &[LeftOut]) -> Option<f64> {
    let times = runs.iter().flat_map(|run| [Some(run.ttft_ms), run.tpot_ms]).flatten();
    let mut errors: Vec<f64> = times.map(|time| time.error.abs()).collect();
    errors.sort_unstable_by(f64::total_cmp);
    errors.get(errors.len() / 2).copied()
}

impl Report {
    /// In words.
    pub(super) fn text(&self) -> String {
        let header = [
            ("tokens", Align::Right),
            ("left out", Align::Left),
            ("graphs", Align::Left),
            ("TTFT, ms", Align::Right),
            ("predicted", Align::Right),
            ("error", Align::Right),
            ("TPOT, ms", Align::Right),
            ("predicted", Align::Right),
            ("error", Align::Right),
        ];
        let cells = |time: Option<PredictedTime>| match time {
            None => ["–", "–", "–"].map(str::to_owned),
            Some(PredictedTime { measured, predicted, error, .. }) => [
                format!("{measured:.1}"),
                format!("{predicted:.1}"),
                format!("{:+.1} %", 100.0 * error),
            ],
        };
        let row = |run: &LeftOut| {
            let graphs = if run.is_warm { "ready" } else { "made in the run" };
            let [first, first_predicted, first_error] = cells(Some(run.ttft_ms));
            let [later, later_predicted, later_error] = cells(run.tpot_ms);
            [
                run.prompt.to_string(),
                run.strategy.clone(),
                graphs.to_owned(),
                first,
                first_predicted,
                first_error,
                later,
                later_predicted,
                later_error,
            ]
        };
        let mut text = table(header, self.runs.iter().map(row).collect());
        for FittedNumber { key, before, value, unit } in &self.fitted {
            text.push_str(&format!("{key}: {value:.4} {unit} (was {before:.4})\n"));
        }
        if let Some(median) = self.median_error {
            text.push_str(&format!("median error: {:.1} %\n", 100.0 * median));
        }
        text
    }
}
