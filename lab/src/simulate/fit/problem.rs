//! Gauss–Newton descent to the least squares.

use lapwing_plan::soc::Soc;

use super::least_squares::solve;
use crate::simulate::error::SimulateError;
use crate::simulate::published::{Published, Role, Row};
use crate::simulate::runs::Runs;
use crate::simulate::scenario::Scenario;

/// Maximum number of steps.
const STEPS_MAX: usize = 12;
/// Change of a parameter with which slopes are measured.
const PROBE: f64 = 0.01;
/// Largest change of a parameter in one step, as a logarithm.
const STRIDE: f64 = 0.3;
/// Damping that keeps undetermined parameters where they are.
const DAMPING: f64 = 1e-6;
/// A step that gains less, in squared standard errors, is the last one.
const GAIN_MIN: f64 = 1e-5;

/// Result of a descent.
pub(super) struct Descent {
    /// Logarithms of the parameters, relative to their start.
    pub(super) at: Vec<f64>,
    pub(super) residuals: Vec<f64>,
    pub(super) steps: usize,
    /// Whether a further step would gain nothing.
    pub(super) converged: bool,
}

/// The parameters, and the numbers they are fitted to.
pub(super) struct Problem<'a> {
    pub(super) base: &'a Scenario,
    pub(super) keys: Vec<String>,
    pub(super) start: Vec<f64>,
    pub(super) pins: Vec<&'a Row>,
}

impl<'a> Problem<'a> {
    /// The pinned parameters of the preset, and the rows that are pins.
    pub(super) fn new(
        base: &'a Scenario,
        published: &'a Published,
    ) -> Result<Problem<'a>, SimulateError> {
        let nothing = |reason: &str| SimulateError::Fit { reason: reason.to_owned() };
        let pins: Vec<&Row> = published.rows.iter().filter(|row| row.role == Role::Pin).collect();
        if pins.is_empty() {
            return Err(nothing("no row has role = \"pin\", so there is nothing to fit to"));
        }
        let parameters = base.parameters();
        let free = parameters.iter().filter(|p| p.is_pinned && p.value > 0.0);
        let (keys, start): (Vec<String>, Vec<f64>) =
            free.map(|parameter| (parameter.key.clone(), parameter.value)).unzip();
        if keys.is_empty() {
            return Err(nothing("the preset has no pinned parameter to fit"));
        }
        Ok(Problem { base, keys, start, pins })
    }

    /// Value of a parameter at that logarithm, or the nearest value allowed.
    pub(super) fn value(&self, key: usize, x: f64) -> f64 {
        let value = self.start[key] * x.exp();
        Soc::nearest_value(&self.keys[key], value).unwrap_or(value)
    }

    pub(super) fn scenario(&self, at: &[f64]) -> Result<Scenario, SimulateError> {
        let mut scenario = self.base.clone();
        for (key, x) in at.iter().enumerate() {
            scenario.set_parameter(&self.keys[key], self.value(key, *x))?;
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

    /// Slopes of the residuals, a row for each pin.
    pub(super) fn slopes(&self, at: &[f64], here: &[f64]) -> Result<Vec<Vec<f64>>, SimulateError> {
        let mut slopes = vec![vec![0.0; self.keys.len()]; self.pins.len()];
        for key in 0..self.keys.len() {
            let mut probe = at.to_vec();
            // A parameter at its maximum is measured downwards.
            let is_stuck = self.value(key, at[key] + PROBE) == self.value(key, at[key]);
            let step = if is_stuck { -PROBE } else { PROBE };
            probe[key] += step;
            let there = self.residuals(&probe)?;
            for pin in 0..self.pins.len() {
                slopes[pin][key] = (there[pin] - here[pin]) / step;
            }
        }
        Ok(slopes)
    }

    /// Gauss–Newton with step halving over the pins selected by `counts`, with the slopes of each step
    /// or with given ones.
    pub(super) fn descend(
        &self,
        mut at: Vec<f64>,
        counts: &dyn Fn(usize) -> bool,
        known: Option<&[Vec<f64>]>,
    ) -> Result<Descent, SimulateError> {
        let cost = |residuals: &[f64]| -> f64 {
            let counted = residuals.iter().enumerate().filter(|(pin, _)| counts(*pin));
            counted.map(|(pin, r)| (r / self.pins[pin].spread).powi(2)).sum()
        };
        let mut here = self.residuals(&at)?;
        for steps in 0..STEPS_MAX {
            let mut slopes = match known {
                Some(known) => known.to_vec(),
                None => self.slopes(&at, &here)?,
            };
            let mut wanted = here.clone();
            for pin in 0..self.pins.len() {
                let weight = if counts(pin) { 1.0 / self.pins[pin].spread } else { 0.0 };
                slopes[pin].iter_mut().for_each(|slope| *slope *= weight);
                wanted[pin] *= weight;
            }
            let step = solve(&slopes, &wanted, DAMPING);
            let mut share = 1.0;
            let better = loop {
                let next = self.stepped(&at, &step, share);
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
                return Ok(Descent { at, residuals: here, steps, converged: true });
            };
            let gain = cost(&here) - cost(&there);
            (at, here) = (next, there);
            if gain < GAIN_MIN {
                let steps = steps + 1;
                return Ok(Descent { at, residuals: here, steps, converged: true });
            }
        }
        Ok(Descent { at, residuals: here, steps: STEPS_MAX, converged: false })
    }

    /// A fraction of a step, within the range of the parameters.
    fn stepped(&self, at: &[f64], step: &[f64], share: f64) -> Vec<f64> {
        let moved = |(key, (x, d)): (usize, (&f64, &f64))| {
            let next = x - (share * d).clamp(-STRIDE, STRIDE);
            (self.value(key, next) / self.start[key]).ln()
        };
        at.iter().zip(step).enumerate().map(moved).collect()
    }
}
