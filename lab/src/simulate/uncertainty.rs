//! What the pins leave open: how far the pinned numbers of a SoC may be off together, and how far its predictions may be.
//!
//! The pins have standard errors ([`Row::spread`]). Near the fit, the logarithms of the pinned numbers then have the covariance
//! C = s²·(JᵀWJ + 1/σ₀²)⁻¹, where J has the slopes of the pins, W the reciprocals of their squared errors, and s² is the mean squared
//! residual in units of the errors, if it is above 1: a form that misses its pins is trusted less. A prediction with slopes g has
//! the standard error √(gᵀCg). That is the error of the numbers, not of the form.

use std::collections::HashMap;

use lapwing_plan::soc::Soc;

use super::error::SimulateError;
use super::fit::inverse;
use super::published::{Published, Quantity, Role, Row};
use super::runs::Runs;
use super::scenario::Scenario;

/// Standard error of the logarithm of a number about which no pin says anything.
const UNKNOWN: f64 = 0.5;
/// Change of a number with which slopes are measured, as a logarithm.
const PROBE: f64 = 0.01;
/// Least ratio of a simulated number to a published one: a number may be 0.
const LEAST: f64 = 1e-12;
/// Standard errors on each side of a prediction, for 95 %.
const SIDE: f64 = 1.96;

/// The pinned numbers of a SoC, and what the pins leave open.
pub(super) struct Uncertainty {
    /// The pinned numbers.
    pub(super) keys: Vec<String>,
    /// Covariance of their logarithms.
    pub(super) covariance: Vec<Vec<f64>>,
    probes: Probes,
}

/// Runs with one pinned number changed.
struct Probes {
    changed: Vec<Changed>,
    known: HashMap<String, f64>,
}

struct Changed {
    key: String,
    scenario: Scenario,
    /// Change of the number, as a logarithm.
    step: f64,
    runs: Runs,
}

impl Uncertainty {
    /// That of a scenario's SoC. No numbers if none is pinned.
    ///
    /// # Errors
    /// When the processors are no SoC, or a run fails.
    pub(super) fn new(
        base: &Scenario,
        published: &Published,
        runs: &mut Runs,
    ) -> Result<Uncertainty, SimulateError> {
        let base = Scenario::on(base.soc()?.clone());
        let mut probes = Probes::new(&base)?;
        let keys: Vec<String> = probes.changed.iter().map(|one| one.key.clone()).collect();
        let pins = published.rows.iter().filter(|row| row.role == Role::Pin);
        let (mut slopes, mut misses) = (Vec::new(), 0.0);
        for row in pins {
            let Some(wanted) = row.published else { continue };
            let here = runs.value(&base, row)?;
            misses += ((here / wanted).max(LEAST).ln() / row.spread).powi(2);
            let slope = probes.slopes(row, here)?;
            slopes.push(slope.iter().map(|slope| slope / row.spread).collect::<Vec<f64>>());
        }
        let free = slopes.len().saturating_sub(keys.len()).max(1) as f64;
        let scale = (misses / free).max(1.0);
        let covariance = inverse(&information(&slopes, keys.len()));
        let covariance =
            covariance.iter().map(|row| row.iter().map(|value| value * scale).collect()).collect();
        Ok(Uncertainty { keys, covariance, probes })
    }

    /// The interval of a prediction: 95 % of what the pins' errors leave open.
    ///
    /// # Errors
    /// When a run fails.
    pub(super) fn interval(&mut self, row: &Row, model: f64) -> Result<[f64; 2], SimulateError> {
        let slopes = self.probes.slopes(row, model)?;
        let side = SIDE * self.variance(&slopes).sqrt();
        Ok([model * (-side).exp(), model * side.exp()])
    }

    /// Variance of the logarithm of a prediction with these slopes.
    pub(super) fn variance(&self, slopes: &[f64]) -> f64 {
        let sums = self.products(slopes);
        slopes.iter().zip(&sums).map(|(a, b)| a * b).sum::<f64>().max(0.0)
    }

    /// C·g: the covariance of each number with a prediction of these slopes.
    pub(super) fn products(&self, slopes: &[f64]) -> Vec<f64> {
        let product = |row: &Vec<f64>| row.iter().zip(slopes).map(|(a, b)| a * b).sum();
        self.covariance.iter().map(product).collect()
    }
}

/// JᵀWJ + 1/σ₀² of slopes that are divided by the errors of their pins.
fn information(slopes: &[Vec<f64>], count: usize) -> Vec<Vec<f64>> {
    let entry = |i: usize, j: usize| {
        let own = if i == j { UNKNOWN.powi(-2) } else { 0.0 };
        slopes.iter().map(|row| row[i] * row[j]).sum::<f64>() + own
    };
    (0..count).map(|i| (0..count).map(|j| entry(i, j)).collect()).collect()
}

impl Probes {
    fn new(base: &Scenario) -> Result<Probes, SimulateError> {
        let mut changed = Vec::new();
        for number in base.parameters() {
            if !(number.is_pinned && number.value > 0.0) {
                continue;
            }
            let at = |step: f64| {
                let value = number.value * step.exp();
                Soc::nearest_value(&number.key, value).unwrap_or(value)
            };
            // A number at its maximum is changed downwards.
            let value = if at(PROBE) > number.value { at(PROBE) } else { at(-PROBE) };
            let mut scenario = base.clone();
            scenario.set_parameter(&number.key, value)?;
            let step = (value / number.value).ln();
            changed.push(Changed { key: number.key, scenario, step, runs: Runs::default() });
        }
        Ok(Probes { changed, known: HashMap::new() })
    }

    /// Slopes of the logarithm of a row's number by the logarithms of the pinned numbers.
    fn slopes(&mut self, row: &Row, here: f64) -> Result<Vec<f64>, SimulateError> {
        let mut slopes = Vec::new();
        for one in &mut self.changed {
            let name = format!("{} {}", row.id, one.key);
            let known = self.known.get(&name).copied();
            let slope = match known {
                Some(slope) => slope,
                None if !matters(&one.key, row) || one.step == 0.0 => 0.0,
                None => (one.runs.value(&one.scenario, row)? / here).ln() / one.step,
            };
            let slope = if slope.is_finite() { slope } else { 0.0 };
            self.known.insert(name, slope);
            slopes.push(slope);
        }
        Ok(slopes)
    }
}

/// Whether a number of the SoC can change a row's number.
fn matters(key: &str, row: &Row) -> bool {
    let (section, _) = key.split_once('.').unwrap_or((key, ""));
    let runs: Vec<_> = row.run.iter().chain(&row.by).collect();
    if runs.is_empty() {
        return row.graphs.is_none() || key.starts_with("npu.prepare");
    }
    let only = |name: &str| runs.iter().all(|run| run.strategy == name);
    let is_chosen = |name: &str| {
        let mut chosen = runs.iter().filter_map(|run| run.device.as_deref());
        chosen.any(|devices| devices.split('+').any(|device| device == name))
    };
    match section {
        "power" => {
            let of_power = [Quantity::PrefillW, Quantity::DecodeW, Quantity::PrefillJ];
            of_power.contains(&row.quantity)
        }
        "renderer" => runs.iter().any(|run| run.interference.is_some()),
        "cpu" => is_chosen("cpu") || runs.iter().any(|run| run.strategy == "cpu-only"),
        _ if key.starts_with("npu.prepare") => {
            runs.iter().any(|run| run.strategy == "online-prepare")
        }
        "npu" | "sync" => !only("gpu-only") && !only("cpu-only"),
        "gpu" => !only("cpu-only"),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(id: &str) -> Row {
        let published = Published::built_in().expect("it is well-formed");
        published.rows.into_iter().find(|row| row.id == id).expect(id)
    }

    #[test]
    fn a_number_that_cannot_matter_does_not() {
        let published = Published::built_in().expect("it is well-formed");
        let base = Scenario::new("sd8gen3").expect("a preset");
        let mut runs = Runs::default();
        for id in ["prefill-gpu-256", "prefill-layer-256", "power-gpu", "table3-o-128-npu"] {
            let row = published.rows.iter().find(|row| row.id == id).expect(id);
            let here = runs.value(&base, row).expect("a run");
            for number in base.parameters().iter().filter(|number| number.is_pinned) {
                let mut other = base.clone();
                other.set_parameter(&number.key, number.value * 1.01).expect("a number");
                let there = runs.value(&other, row).expect("a run");
                let is_skipped = !matters(&number.key, row);
                assert!(!is_skipped || there == here, "{id} by {}: {here} {there}", number.key);
            }
        }
    }

    #[test]
    fn an_interval_holds_its_prediction_and_grows_with_the_errors_of_the_pins() {
        let mut published = Published::built_in().expect("it is well-formed");
        let width = |published: &Published| {
            let base = Scenario::new("sd8gen3").expect("a preset");
            let mut runs = Runs::default();
            let mut found = Uncertainty::new(&base, published, &mut runs).expect("slopes");
            let row = row("table3-down-256-npu");
            let model = runs.value(&base, &row).expect("a number");
            let [low, high] = found.interval(&row, model).expect("an interval");
            assert!(low < model && model < high, "{low} {model} {high}");
            high / low
        };
        published.rows.retain(|row| row.role == Role::Pin && row.product.is_some());
        let narrow = width(&published);
        published.rows.iter_mut().for_each(|row| row.spread *= 3.0);
        assert!(width(&published) > narrow);
    }
}
