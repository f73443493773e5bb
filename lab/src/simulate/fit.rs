//! Fits a preset's pinned parameters to published numbers, and evaluates the fit on each number that
//! it did not use.

use serde::Serialize;

use super::error::SimulateError;
use super::published::{Published, Role};
use super::runs::Runs;
use super::scenario::Scenario;

pub(super) mod least_squares;
mod problem;

pub(super) use least_squares::inverse;
use least_squares::rank;
use problem::{Descent, Problem};

/// Result of a fit.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Fit {
    /// Parameters that were fitted.
    pub parameters: Vec<FittedParameter>,
    /// Numbers that were fitted to.
    pub pins: Vec<FittedPin>,
    /// Numbers that were not fitted to.
    pub checks: Vec<FittedCheck>,
    /// Number of steps.
    pub steps: usize,
    /// Whether it stopped because it no longer improved, and not at the maximum number of steps.
    pub converged: bool,
    /// Root mean square of ln(model / published) over the pins.
    pub error: f64,
}

/// A fitted parameter.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct FittedParameter {
    /// Its name.
    pub key: String,
    /// Its unit.
    pub unit: String,
    /// Value before the fit.
    pub before: f64,
    /// Value after the fit.
    pub after: f64,
    /// Whether the pins determine it; otherwise its value hardly moves and is meaningless.
    pub determined: bool,
}

/// A number that parameters were fitted to.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct FittedPin {
    /// Name of the row.
    pub id: String,
    /// The published number.
    pub published: f64,
    /// The model's number, with the fitted parameters.
    pub model: f64,
    /// (Model − published) / published.
    pub error: f64,
    /// The same error with a fit that leaves this number out.
    pub error_left_out: Option<f64>,
    /// Parameters that only this pin determines: without it they keep their values, and the error is
    /// meaningless.
    pub alone_determines: Vec<String>,
}

/// A number that was not fitted to.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct FittedCheck {
    /// Name of the row.
    pub id: String,
    /// The published number.
    pub published: f64,
    /// The model's number.
    pub model: f64,
    /// (Model − published) / published.
    pub error: f64,
}

impl Fit {
    /// Fits every pinned parameter of the scenario's preset to the pins by least squares of
    /// ln(model / published), each divided by the pin's standard error, then again without each pin, to predict it.
    ///
    /// # Errors
    /// When there are no parameters or no pins, or a run fails.
    pub fn new(base: &Scenario, published: &Published) -> Result<Fit, SimulateError> {
        base.soc()?;
        let problem = Problem::new(base, published)?;
        let start = vec![0.0; problem.keys.len()];
        let Descent { at, residuals, steps, converged } =
            problem.descend(start, &|_| true, None)?;
        let slopes = problem.slopes(&at, &residuals)?;
        let known = determined(&slopes);
        let mut fitted = Vec::new();
        for (pin, row) in problem.pins.iter().enumerate() {
            let alone = alone_determines(&slopes, &known, pin);
            // Near the optimum its slopes can be reused.
            let without = |other| other != pin;
            let left_out = match alone.is_empty() {
                true => Some(problem.descend(at.clone(), &without, Some(&slopes))?.residuals[pin]),
                false => None,
            };
            let alone: Vec<String> = alone.into_iter().map(|k| problem.keys[k].clone()).collect();
            let published = row.published.unwrap_or(f64::NAN);
            fitted.push(FittedPin {
                id: row.id.clone(),
                published,
                model: published * residuals[pin].exp(),
                error: residuals[pin].exp_m1(),
                error_left_out: left_out.map(f64::exp_m1),
                alone_determines: alone,
            });
        }
        let mean = residuals.iter().map(|r| r * r).sum::<f64>() / residuals.len() as f64;
        Ok(Fit {
            parameters: parameters(&problem, &at, &known),
            pins: fitted,
            checks: checks(&problem.scenario(&at)?, published)?,
            steps,
            converged,
            error: mean.sqrt(),
        })
    }
}

impl Fit {
    /// The scenario with the fitted numbers; those that no pin determines keep their values.
    ///
    /// # Errors
    /// When the scenario's processors are not those of the fit.
    pub fn applied_to(&self, base: &Scenario) -> Result<Scenario, SimulateError> {
        let mut scenario = base.clone();
        for number in self.parameters.iter().filter(|number| number.determined) {
            scenario.set_parameter(&number.key, number.after)?;
        }
        Ok(scenario)
    }
}

fn parameters(problem: &Problem<'_>, at: &[f64], known: &[bool]) -> Vec<FittedParameter> {
    let units = problem.base.parameters();
    let unit = |key: &str| units.iter().find(|p| p.key == key).map(|p| p.unit.clone());
    let one = |(at_key, key): (usize, &String)| FittedParameter {
        key: key.clone(),
        unit: unit(key).unwrap_or_default(),
        before: problem.start[at_key],
        after: problem.value(at_key, at[at_key]),
        determined: known[at_key],
    };
    problem.keys.iter().enumerate().map(one).collect()
}

fn checks(scenario: &Scenario, published: &Published) -> Result<Vec<FittedCheck>, SimulateError> {
    let mut runs = Runs::default();
    let rows = published.rows.iter().filter(|row| row.role == Role::Check);
    rows.filter_map(|row| Some((row, row.published?)))
        .map(|(row, published)| {
            let model = runs.value(scenario, row)?;
            let error = (model - published) / published;
            Ok(FittedCheck { id: row.id.clone(), published, model, error })
        })
        .collect()
}

/// Which parameters these slopes determine: those whose column is not a combination of the others.
fn determined(slopes: &[Vec<f64>]) -> Vec<bool> {
    let all = rank(slopes);
    let keys = 0..slopes.first().map_or(0, Vec::len);
    keys.map(|key| {
        let without = slopes.iter().map(|row| {
            let others = row.iter().enumerate().filter(|(at, _)| *at != key);
            others.map(|(_, slope)| *slope).collect::<Vec<f64>>()
        });
        rank(&without.collect::<Vec<_>>()) < all
    })
    .collect()
}

/// Parameters that are determined only by this pin.
fn alone_determines(slopes: &[Vec<f64>], known: &[bool], pin: usize) -> Vec<usize> {
    let others = slopes.iter().enumerate().filter(|(at, _)| *at != pin);
    let others: Vec<Vec<f64>> = others.map(|(_, row)| row.clone()).collect();
    let without = determined(&others);
    let still = |key: &usize| without.get(*key).copied().unwrap_or(false);
    (0..known.len()).filter(|key| known[*key] && !still(key)).collect()
}

#[cfg(test)]
mod tests {
    use lapwing_plan::soc::Soc;

    use super::*;

    /// The rows whose id begins like this.
    fn pins(begins: &[&str]) -> Published {
        let mut published = Published::built_in().expect("it is well-formed");
        published.rows.retain(|row| begins.iter().any(|begin| row.id.starts_with(begin)));
        published
    }

    /// sd8gen3 with a changed pinned number.
    fn with(key: &str, factor: f64) -> Scenario {
        let preset = Soc::preset("sd8gen3").expect("a preset");
        let mut numbers: toml::Table = preset.to_toml().expect("text").parse().expect("TOML");
        let (section, name) = key.split_once('.').expect("a path");
        let value = &mut numbers[section][name]["value"];
        *value = (value.as_float().expect("a number") * factor).into();
        Scenario::on(Soc::from_toml(&toml::to_string(&numbers).expect("TOML")).expect("a system"))
    }

    fn after(fit: &Fit, key: &str) -> f64 {
        fit.parameters.iter().find(|p| p.key == key).expect(key).after
    }

    #[test]
    fn a_changed_number_is_recovered() {
        let published = pins(&["table3"]);
        for key in ["gpu.rate", "npu.rate", "npu.wide_rows"] {
            let right = Fit::new(&with(key, 1.0), &published).expect("a fit");
            let fit = Fit::new(&with(key, 1.3), &published).expect("a fit");
            let (found, wanted) = (after(&fit, key), after(&right, key));
            assert!((found / wanted - 1.0).abs() < 0.01, "{key}: {found} for {wanted}");
            assert!(fit.converged && fit.error < 0.05, "{fit:?}");
        }
    }

    #[test]
    fn a_number_without_pins_is_reported_as_undetermined() {
        let fit = Fit::new(&with("gpu.rate", 1.0), &pins(&["table3"])).expect("a fit");
        let known = |key: &str| {
            let found = fit.parameters.iter().find(|p| p.key == key);
            found.expect(key).determined
        };
        assert!(known("gpu.rate") && known("gpu.weight_time") && known("npu.wide_rows"));
        assert!(!known("sync.fast") && !known("power.gpu") && !known("gpu.small_rate"));
        // One equation with two unknowns.
        assert_eq!(determined(&[vec![1.0, 1.0, 0.0], vec![0.0, 0.0, 2.0]]), [false, false, true]);
        let all = vec![vec![1.0, 1.0], vec![1.0, -1.0]];
        assert_eq!(alone_determines(&all, &determined(&all), 0), [0, 1]);
    }

    #[test]
    fn a_pin_beyond_the_range_of_a_number_does_not_end_the_fit() {
        let mut published = pins(&["power-tensor"]);
        published.rows[0].published = Some(40.0);
        let fit = Fit::new(&with("gpu.rate", 1.0), &published).expect("a fit");
        assert!(after(&fit, "power.co_run") <= 1.0, "{fit:?}");
    }
}
