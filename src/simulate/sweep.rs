//! Sweeps: one run for each combination of values.

use std::fmt::Write;

use super::change::Change;
use super::error::SimulateError;
use super::labels::setting_label;
use super::names::WHOLE_NUMBERS;
use super::repeated::check_count;
use super::runs::Runs;
use super::scenario::Scenario;
use super::simulated::Simulated;

mod figures;
mod plotted;

pub use figures::{FIGURES, Figure, figure};

/// A setting or parameter, and its values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Axis {
    /// Setting or parameter.
    pub key: String,
    /// Values, as text.
    pub values: Vec<String>,
}

/// The setting of which all runs are combined in plots.
const SEED: &str = "seed";
/// Maximum number of values of an axis.
const VALUES_MAX: usize = 10_000;
/// Maximum number of runs of a sweep.
const RUNS_MAX: usize = 100_000;

impl Axis {
    /// Parses `KEY=A,B,C` or `KEY=FROM:TO[:STEP]`. Without a step there are about 16 values; settings
    /// that are counts get integers.
    ///
    /// # Errors
    /// [`SimulateError::NoChange`] and [`SimulateError::BadValue`].
    pub fn parse(text: &str) -> Result<Axis, SimulateError> {
        let fail = || SimulateError::NoChange { text: text.to_owned() };
        let (key, values) = text.split_once('=').ok_or_else(fail)?;
        let (key, values) = (key.trim(), values.trim());
        if key.is_empty() || values.is_empty() {
            return Err(fail());
        }
        let values = match values.contains(':') {
            true => range(key, values)?,
            false => values.split(',').map(|value| value.trim().to_owned()).collect(),
        };
        Ok(Axis { key: key.to_owned(), values })
    }

    /// An axis of `count` seeds of the noise, from `first` on: from 2 to [`Repeated::MAX`].
    ///
    /// [`Repeated::MAX`]: super::repeated::Repeated::MAX
    ///
    /// # Errors
    /// [`SimulateError::BadValue`] for another count.
    pub fn seeds(first: u64, count: usize) -> Result<Axis, SimulateError> {
        check_count(count)?;
        let seeds = (0..count as u64).map(|at| first.wrapping_add(at).to_string());
        Ok(Axis { key: SEED.to_owned(), values: seeds.collect() })
    }

    /// Whether all its values are numbers, so that it can be the x-axis of a plot.
    pub fn has_numbers(&self) -> bool {
        self.values.iter().all(|value| value.parse::<f64>().is_ok())
    }
}

fn range(key: &str, text: &str) -> Result<Vec<String>, SimulateError> {
    let bad = |expected: &str| SimulateError::BadValue {
        key: key.to_owned(),
        value: text.to_owned(),
        expected: expected.to_owned(),
    };
    let numbers: Result<Vec<f64>, _> = text.split(':').map(|n| n.trim().parse()).collect();
    let numbers = numbers.map_err(|_| bad("write a range as FROM:TO or FROM:TO:STEP"))?;
    let (from, to, step) = match numbers[..] {
        [from, to] => (from, to, default_step(key, (from, to))),
        [from, to, step] => (from, to, step),
        _ => return Err(bad("write a range as FROM:TO or FROM:TO:STEP")),
    };
    if !(from.is_finite() && to.is_finite() && from <= to && step > 0.0) {
        return Err(bad("a range must ascend, in steps above 0"));
    }
    let count = ((to - from) / step + 1e-9).floor();
    if count >= VALUES_MAX as f64 {
        return Err(bad(&format!("a range has at most {VALUES_MAX} values")));
    }
    let digits = 12;
    let value = |at: usize| {
        let text = format!("{:.digits$}", from + at as f64 * step);
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    };
    Ok((0..=count as usize).map(value).collect())
}

/// A fifteenth of the range; an integer if both ends are.
fn default_step(key: &str, (from, to): (f64, f64)) -> f64 {
    let step = (to - from) / 15.0;
    let whole = from.fract() == 0.0 && to.fract() == 0.0 && to - from >= 15.0;
    if whole || WHOLE_NUMBERS.contains(&key) {
        step.round().max(1.0)
    } else if step > 0.0 {
        step
    } else {
        1.0
    }
}

/// A finished sweep.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Sweep {
    /// The axes; the first varies slowest.
    pub axes: Vec<Axis>,
    /// Each axis in words, with its unit.
    pub labels: Vec<String>,
    /// All runs: the values, and the results or the error.
    pub points: Vec<Point>,
}

/// A run of a sweep.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Point {
    /// The value of each axis.
    pub values: Vec<String>,
    /// Results of the run, or the error.
    pub outcome: Result<Simulated, String>,
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
            let mut rest = at;
            let mut values: Vec<String> = Vec::new();
            for axis in axes.iter().rev() {
                values.push(axis.values[rest % axis.values.len()].clone());
                rest /= axis.values.len();
            }
            values.reverse();
            let changes = axes.iter().zip(&values);
            let changes = changes
                .map(|(axis, value)| Change { key: axis.key.clone(), value: value.clone() })
                .collect::<Vec<_>>();
            let mut scenario = base.clone();
            scenario.set_all(&changes)?;
            let outcome = runs.run(&scenario).map_err(|error| error.to_string());
            points.push(Point { values, outcome });
        }
        let labels = axes.iter().map(|axis| setting_label(&axis.key, base)).collect();
        Ok(Sweep { axes, labels, points })
    }

    /// A CSV table with a row for each run.
    pub fn csv(&self) -> String {
        let keys = self.axes.iter().map(|axis| axis.key.as_str());
        let heads: Vec<&str> = keys.chain(FIGURES.iter().map(|f| f.0)).chain(["error"]).collect();
        let mut csv = heads.join(",") + "\n";
        for point in &self.points {
            let mut cells: Vec<String> = point.values.iter().map(|v| quoted(v)).collect();
            for (_, of) in FIGURES {
                let value = point.outcome.as_ref().ok().and_then(of);
                cells.push(value.map_or(String::new(), |value| value.to_string()));
            }
            cells.push(point.outcome.as_ref().err().map_or(String::new(), |error| quoted(error)));
            let _ = writeln!(csv, "{}", cells.join(","));
        }
        csv
    }
}

/// Checks all values before anything runs; returns the number of runs.
fn check(base: &Scenario, axes: &[Axis]) -> Result<usize, SimulateError> {
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
    let count = count.filter(|count| *count <= RUNS_MAX).ok_or_else(many)?;
    for (axis, value) in axes.iter().flat_map(|axis| axis.values.iter().map(move |v| (axis, v))) {
        let mut scenario = base.clone();
        scenario.set(&axis.key, value)?;
        if axis.key == "model" {
            scenario.check_model()?;
        }
    }
    Ok(count)
}

pub(super) fn quoted(text: &str) -> String {
    match text.contains([',', '"', '\n']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_has_the_values_as_written() {
        let values = |text: &str| Axis::parse(text).expect(text).values;
        assert_eq!(values("strategy=pipe, auto"), ["pipe", "auto"]);
        assert_eq!(values("prompt=32:128:32"), ["32", "64", "96", "128"]);
        assert_eq!(values("gpu.rate=0.1:0.3:0.1"), ["0.1", "0.2", "0.3"]);
        assert_eq!(values("prompt=32:1024").len(), 16);
        assert_eq!(values("prompt=5:5"), ["5"]);
        assert_eq!(values("verify=1:8"), ["1", "2", "3", "4", "5", "6", "7", "8"]);
        assert_eq!(values("npu.tile=16:64").len(), 17);
        for wrong in ["prompt", "=3", "prompt=", "prompt=9:3", "prompt=1:9:0", "prompt=1:2:3:4"] {
            assert!(Axis::parse(wrong).is_err(), "{wrong}");
        }
        assert!(Axis::parse("prompt=0:1e9:1").expect_err("many").to_string().contains("at most"));
    }

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
        let names: Vec<&String> = run.as_object().expect("an object").keys().collect();
        assert_eq!(names.len(), FIGURES.len());
        assert!(FIGURES.iter().all(|(name, _)| names.iter().any(|known| known == name)));
    }

    #[test]
    fn commas_in_messages_are_quoted() {
        assert_eq!(quoted("a, \"b\""), "\"a, \"\"b\"\"\"");
    }
}
