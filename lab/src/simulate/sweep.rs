//! Sweeps: one run for each combination of values.

use super::change::Change;
use super::error::SimulateError;
use super::runs::Runs;
use super::scenario::Scenario;
use super::simulated::Simulated;
use crate::table::table;

mod axis;
mod figures;
mod groups;
mod paired;
mod plotted;

pub use axis::Axis;
pub(crate) use axis::SEED;
pub use figures::{FIGURES, Figure, Results, figure};
pub use groups::GroupMean;
pub use paired::Difference;

/// Maximum number of runs of a sweep.
const RUNS_MAX: usize = 100_000;

/// A finished sweep, whose runs have results of the type `R`.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Sweep<R = Simulated> {
    /// The axes; the first varies slowest.
    pub axes: Vec<Axis>,
    /// Each axis in words, with its unit.
    pub labels: Vec<String>,
    /// The settings that no axis varies, as keys and values ([`Scenario::settings`]).
    pub settings: Vec<(String, String)>,
    /// All runs: the values, and the results or the error.
    pub points: Vec<Point<R>>,
}

/// A run of a sweep.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Point<R = Simulated> {
    /// The value of each axis.
    pub values: Vec<String>,
    /// Results of the run, or the error.
    pub outcome: Result<R, String>,
}

impl Sweep {
    /// Runs all combinations.
    ///
    /// # Errors
    /// Before anything runs: if an axis has an unknown key, a key is given twice, a value is
    /// impossible, or there are too many runs. If a run fails (a strategy that does not fit the
    /// devices), its point has the error.
    pub fn run(base: &Scenario, axes: Vec<Axis>, runs: &mut Runs) -> Result<Sweep, SimulateError> {
        let count = check(base, &axes)?;
        let mut points = Vec::with_capacity(count);
        for at in 0..count {
            let values = combination(&axes, at);
            let changes = axes.iter().zip(&values);
            let changes = changes
                .map(|(axis, value)| Change { key: axis.key.clone(), value: value.clone() })
                .collect::<Vec<_>>();
            let mut scenario = base.clone();
            scenario.set_all(&changes)?;
            let outcome = runs.run(&scenario).map_err(|error| error.to_string());
            points.push(Point { values, outcome });
        }
        let labels = axes.iter().map(|axis| axis.label(base)).collect();
        let mut settings = base.settings();
        settings.retain(|(key, _)| axes.iter().all(|axis| axis.key != *key));
        Ok(Sweep { axes, labels, settings, points })
    }

    /// As [`csv_of`](Sweep::csv_of), with all results of a run.
    pub fn csv(&self) -> String {
        self.csv_of(&FIGURES.iter().map(|figure| figure.0).collect::<Vec<_>>())
    }
}

impl<R: Results> Sweep<R> {
    /// A CSV table with a row for each run: the values of the axes, these results, the error, and the
    /// other settings, which are the same in every row.
    pub fn csv_of(&self, figures: &[&str]) -> String {
        let keys = self.axes.iter().map(|axis| axis.key.as_str());
        let settings = self.settings.iter().map(|(key, _)| key.as_str());
        let results = figures.iter().copied().chain(["error"]);
        let heads = keys.chain(results).chain(settings);
        let mut rows: Vec<Vec<String>> = vec![heads.map(str::to_owned).collect()];
        for point in &self.points {
            let mut cells = point.values.clone();
            for figure in figures {
                cells.push(point.result(figure).map_or(String::new(), cell));
            }
            cells.push(point.outcome.as_ref().err().cloned().unwrap_or_default());
            cells.extend(self.settings.iter().map(|(_, value)| value.clone()));
            rows.push(cells);
        }
        table(rows)
    }
}

impl<R: Results> Point<R> {
    /// A result of the run; `None` if the run has failed, or does not have it.
    pub fn result(&self, name: &str) -> Option<f64> {
        self.outcome.as_ref().ok()?.result(name)
    }
}

/// The values of the run of that number, of all combinations. The first axis varies slowest.
pub(crate) fn combination(axes: &[Axis], number: usize) -> Vec<String> {
    let mut rest = number;
    let mut values = Vec::with_capacity(axes.len());
    for axis in axes.iter().rev() {
        values.push(axis.values[rest % axis.values.len()].clone());
        rest /= axis.values.len();
    }
    values.reverse();
    values
}

/// Checks that no axis is given twice, and that there are not too many runs; returns their number.
pub(crate) fn combinations(axes: &[Axis]) -> Result<usize, SimulateError> {
    for (at, axis) in axes.iter().enumerate() {
        if axes[..at].iter().any(|other| other.key == axis.key) {
            return Err(SimulateError::Twice { key: axis.key.clone() });
        }
    }
    let mut counts = axes.iter().map(|axis| axis.values.len());
    let count = counts.try_fold(1_usize, |count, values| count.checked_mul(values));
    let many = || SimulateError::BadValue {
        key: "sweep".to_owned(),
        value: format!("{} axes", axes.len()),
        expected: format!("their product must be at most {RUNS_MAX} runs"),
    };
    count.filter(|count| *count <= RUNS_MAX).ok_or_else(many)
}

/// Checks all values before anything runs; returns the number of runs.
fn check(base: &Scenario, axes: &[Axis]) -> Result<usize, SimulateError> {
    let count = combinations(axes)?;
    for (axis, value) in axes.iter().flat_map(|axis| axis.values.iter().map(move |v| (axis, v))) {
        let mut scenario = base.clone();
        scenario.set(&axis.key, value)?;
        if axis.key == "model" {
            scenario.check_model()?;
        }
    }
    Ok(count)
}

/// A number of a table: six significant digits of one that is not whole. JSON has all digits.
pub(crate) fn cell(value: f64) -> String {
    match value.fract() == 0.0 {
        true => value.to_string(),
        false => format!("{value:.5e}").parse().unwrap_or(value).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impossible_sweeps_are_rejected_before_any_run() {
        let base = Scenario::new("sd8gen3").expect("a preset");
        let wrong = [
            (&["prompt=8", "prompt=9"][..], "prompt"),
            (&["model=llama-3-8b,llama-9"], "llama-9"),
            (&["strategy=pipe,fastest"], "fastest"),
            (&["prompt=1:9999:1", "decode=1:9999:1", "seed=1:9999:1", "chunk=1:9999:1"], "at most"),
            (&["gpu.rate=1:9999:1", "npu.rate=1:9999:1"], "at most"),
        ];
        for (axes, says) in wrong {
            let axes = axes.iter().map(|axis| Axis::parse(axis).expect(axis)).collect();
            let mut runs = Runs::default();
            let error = Sweep::run(&base, axes, &mut runs).expect_err(says).to_string();
            assert!(error.contains(says) && runs.count() == 0, "{error}");
        }
    }

    #[test]
    fn every_result_of_a_run_is_a_column() {
        let base = Scenario::new("sd8gen3").expect("a preset");
        let run = serde_json::to_value(base.run().expect("a run")).expect("JSON");
        let run = run.as_object().expect("an object");
        // A result of the whole run is a number, or null.
        let names: Vec<&String> =
            run.iter().filter(|(_, value)| !value.is_array()).map(|(name, _)| name).collect();
        assert_eq!(names.len(), FIGURES.len());
        assert!(FIGURES.iter().all(|(name, _)| names.iter().any(|known| known == name)));
    }

    #[test]
    fn numbers_of_a_table_have_no_more_digits_than_they_are_worth() {
        let cells = [1_024.886_754_321, 0.001_234_567_89, -21.4, 7_425.0, 12_345_678.0, 0.0];
        let texts = ["1024.89", "0.00123457", "-21.4", "7425", "12345678", "0"];
        assert_eq!(cells.map(cell), texts);
    }
}
