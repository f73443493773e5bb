//! Fitting a preset's pinned parameters to published numbers, and how well it predicts each number
//! that it was not fitted to.

use serde::Serialize;

use super::published::{Published, Role, Row};
use super::{Runs, Scenario, SimulateError};

mod least_squares;

use least_squares::solve;

/// A fit.
#[derive(Clone, Debug, Serialize)]
pub struct Fit {
    /// Parameters that were fitted.
    pub parameters: Vec<FittedParameter>,
    /// Numbers that they were fitted to.
    pub pins: Vec<FittedPin>,
    /// Numbers that they were not fitted to.
    pub checks: Vec<FittedCheck>,
    /// Steps until it did not get better.
    pub steps: usize,
    /// Root of the mean square of ln(model / published) over the pins.
    pub error: f64,
}

/// A parameter.
#[derive(Clone, Debug, Serialize)]
pub struct FittedParameter {
    /// Its name.
    pub key: String,
    /// Its unit.
    pub unit: String,
    /// Value before.
    pub before: f64,
    /// Value after.
    pub after: f64,
}

/// A number that parameters were fitted to.
#[derive(Clone, Debug, Serialize)]
pub struct FittedPin {
    /// Name of the row.
    pub id: String,
    /// The published number.
    pub published: f64,
    /// The model's, with the fitted parameters.
    pub model: f64,
    /// (Model − published) / published.
    pub error: f64,
    /// The same error where the fit was made without this number.
    pub error_left_out: Option<f64>,
    /// Parameters that no other pin determines: without this one they stay as they were, and the
    /// error says nothing.
    pub alone_determines: Vec<String>,
}

/// A number that nothing was fitted to.
#[derive(Clone, Debug, Serialize)]
pub struct FittedCheck {
    /// Name of the row.
    pub id: String,
    /// The published number.
    pub published: f64,
    /// The model's.
    pub model: f64,
    /// (Model − published) / published.
    pub error: f64,
}

/// Most steps.
const STEPS_MAX: usize = 12;
/// Change of a parameter by which slopes are measured.
const PROBE: f64 = 0.01;
/// Largest change of a parameter in one step, as a logarithm.
const STRIDE: f64 = 0.3;
/// Weight that keeps undetermined parameters where they are.
const DAMPING: f64 = 1e-6;
/// A slope below this does not determine a parameter.
const FLAT: f64 = 1e-3;

/// Where a descent ended.
struct Descent {
    at: Vec<f64>,
    residuals: Vec<f64>,
    steps: usize,
}

struct Problem<'a> {
    base: &'a Scenario,
    keys: Vec<String>,
    start: Vec<f64>,
    pins: Vec<&'a Row>,
}

impl Problem<'_> {
    fn scenario(&self, at: &[f64]) -> Result<Scenario, SimulateError> {
        let mut scenario = self.base.clone();
        for ((key, start), x) in self.keys.iter().zip(&self.start).zip(at) {
            scenario.set_parameter(key, start * x.exp())?;
        }
        Ok(scenario)
    }

    /// ln(model / published) of each pin.
    fn residuals(&self, at: &[f64]) -> Result<Vec<f64>, SimulateError> {
        let scenario = self.scenario(at)?;
        let mut runs = Runs::default();
        let residual = |row: &&Row| {
            let published = row.published.unwrap_or(1.0);
            Ok((runs.value(&scenario, row)? / published).max(1e-12).ln())
        };
        self.pins.iter().map(residual).collect()
    }

    /// Slopes of the residuals: a row for each pin.
    fn slopes(&self, at: &[f64], here: &[f64]) -> Result<Vec<Vec<f64>>, SimulateError> {
        let mut slopes = vec![vec![0.0; self.keys.len()]; self.pins.len()];
        for key in 0..self.keys.len() {
            let mut probe = at.to_vec();
            probe[key] += PROBE;
            let there = self.residuals(&probe)?;
            for pin in 0..self.pins.len() {
                slopes[pin][key] = (there[pin] - here[pin]) / PROBE;
            }
        }
        Ok(slopes)
    }

    /// Gauss–Newton with halved steps, over the pins that `counts` says; with the slopes of each
    /// step, or with known ones.
    fn descend(
        &self,
        mut at: Vec<f64>,
        counts: &dyn Fn(usize) -> bool,
        known: Option<&[Vec<f64>]>,
    ) -> Result<Descent, SimulateError> {
        let cost = |residuals: &[f64]| -> f64 {
            let counted = residuals.iter().enumerate().filter(|(pin, _)| counts(*pin));
            counted.map(|(_, r)| r * r).sum()
        };
        let mut here = self.residuals(&at)?;
        for steps in 0..STEPS_MAX {
            let mut slopes = match known {
                Some(known) => known.to_vec(),
                None => self.slopes(&at, &here)?,
            };
            let mut wanted = here.clone();
            for pin in (0..self.pins.len()).filter(|pin| !counts(*pin)) {
                slopes[pin].fill(0.0);
                wanted[pin] = 0.0;
            }
            let step = solve(&slopes, &wanted, DAMPING);
            let mut share = 1.0;
            let better = loop {
                let moved = at.iter().zip(&step);
                let next: Vec<f64> =
                    moved.map(|(x, d)| x - (share * d).clamp(-STRIDE, STRIDE)).collect();
                let there = self.residuals(&next)?;
                if cost(&there) < cost(&here) {
                    break Some((next, there));
                }
                share *= 0.5;
                if share < 0.1 {
                    break None;
                }
            };
            let Some((next, there)) = better else {
                return Ok(Descent { at, residuals: here, steps });
            };
            let gain = cost(&here) - cost(&there);
            (at, here) = (next, there);
            if gain < 1e-9 {
                return Ok(Descent { at, residuals: here, steps: steps + 1 });
            }
        }
        Ok(Descent { at, residuals: here, steps: STEPS_MAX })
    }
}

impl Fit {
    /// Fits every pinned parameter of the scenario's preset to the pins, least squares of
    /// ln(model / published); then again without each pin, to predict it.
    ///
    /// # Errors
    /// When there is nothing to fit, or to fit to, or a run fails.
    pub fn new(base: &Scenario, published: &Published) -> Result<Fit, SimulateError> {
        base.soc()?;
        let nothing = |reason: &str| SimulateError::Fit { reason: reason.to_owned() };
        let pins: Vec<&Row> = published.rows.iter().filter(|row| row.role == Role::Pin).collect();
        if pins.is_empty() {
            return Err(nothing("there is no row with role = \"pin\" to fit to"));
        }
        let parameters = base.parameters();
        let free = parameters.iter().filter(|p| p.is_pinned && p.value > 0.0);
        let (keys, start): (Vec<String>, Vec<f64>) =
            free.map(|parameter| (parameter.key.clone(), parameter.value)).unzip();
        if keys.is_empty() {
            return Err(nothing("the preset has no parameter that is pinned"));
        }
        let problem = Problem { base, keys, start, pins };
        let start = vec![0.0; problem.keys.len()];
        let Descent { at, residuals, steps } = problem.descend(start, &|_| true, None)?;
        let slopes = problem.slopes(&at, &residuals)?;
        let mut fitted = Vec::new();
        for (pin, row) in problem.pins.iter().enumerate() {
            let alone = undetermined(&slopes, pin);
            // Near the optimum: its slopes do.
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
            parameters: problem.parameters(&at),
            pins: fitted,
            checks: problem.checks(&at, published)?,
            steps,
            error: mean.sqrt(),
        })
    }
}

impl Problem<'_> {
    fn parameters(&self, at: &[f64]) -> Vec<FittedParameter> {
        let units = self.base.parameters();
        let unit = |key: &str| units.iter().find(|p| p.key == key).map(|p| p.unit.clone());
        let all = self.keys.iter().zip(&self.start).zip(at);
        all.map(|((key, before), x)| FittedParameter {
            key: key.clone(),
            unit: unit(key).unwrap_or_default(),
            before: *before,
            after: before * x.exp(),
        })
        .collect()
    }

    fn checks(&self, at: &[f64], published: &Published) -> Result<Vec<FittedCheck>, SimulateError> {
        let scenario = self.scenario(at)?;
        let mut runs = Runs::default();
        let rows = published.rows.iter().filter(|row| row.role == Role::Check);
        rows.filter_map(|row| Some((row, row.published?)))
            .map(|(row, published)| {
                let model = runs.value(&scenario, row)?;
                let error = (model - published) / published;
                Ok(FittedCheck { id: row.id.clone(), published, model, error })
            })
            .collect()
    }
}

/// Parameters whose only pin with a slope is this one.
fn undetermined(slopes: &[Vec<f64>], pin: usize) -> Vec<usize> {
    let has = |row: &Vec<f64>, key: usize| row[key].abs() > FLAT;
    let keys = 0..slopes.first().map_or(0, Vec::len);
    keys.filter(|key| {
        let others = slopes.iter().enumerate().filter(|(at, _)| *at != pin);
        has(&slopes[pin], *key) && !others.into_iter().any(|(_, row)| has(row, *key))
    })
    .collect()
}
