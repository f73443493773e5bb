//! Measures how much each parameter of a preset matters.

use std::ops::Range;

use lapwing_plan::soc::Soc;
use serde::Serialize;

use super::error::SimulateError;
use super::names::WHOLE_NUMBERS;
use super::runs::Runs;
use super::scenario::{ParameterValue, Scenario};
use super::simulated::Simulated;

mod measurements;

/// Dependence of a run on every parameter.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Sensitivity {
    /// Prompt tokens per second without changes.
    pub prefill_tokens_per_second: f64,
    /// Generated tokens per second without changes.
    pub decode_tokens_per_second: Option<f64>,
    /// Relative step with which slopes are measured, up and down as far as values are allowed; for
    /// parameters that are 0, the absolute step, upwards.
    pub step: f64,
    /// Parameters, the most important first.
    pub parameters: Vec<Slope>,
    /// Parameters without a slope.
    pub skipped: Vec<Skipped>,
    /// What a measurement of each parameter would tell, the most telling first. None if no parameter is pinned.
    pub measurements: Vec<Measurement>,
}

/// What a measurement of a parameter would tell about a run.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Measurement {
    /// Its name.
    pub key: String,
    /// Relative standard error of the parameter: what the errors of the pins leave open, or for one that no pin is for, an estimate: 10 %
    /// if it is derived, and 30 % if it is assumed.
    pub spread: f64,
    /// Share of the variance of the prefill speed that an exact measurement would remove.
    pub prefill_share: f64,
    /// Share of the variance of the decode speed that it would remove.
    pub decode_share: Option<f64>,
}

/// A parameter without a slope.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Skipped {
    /// Its name.
    pub key: String,
    /// Its value, as text, because it may be infinite.
    pub value: String,
    /// The reason.
    pub reason: String,
}

/// A parameter and its slopes.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Slope {
    /// Its name.
    pub key: String,
    /// Its value.
    pub value: f64,
    /// Its unit.
    pub unit: String,
    /// `pinned`, `derived` or `assumed`.
    pub status: String,
    /// ∂(prompt tokens per second) / ∂(parameter).
    pub prefill_slope: f64,
    /// The same as a ratio of relative changes: 1 means proportional. `None` at 0.
    pub prefill_elasticity: Option<f64>,
    /// ∂(generated tokens per second) / ∂(parameter).
    pub decode_slope: Option<f64>,
    /// The same as a ratio of relative changes.
    pub decode_elasticity: Option<f64>,
}

/// A speed taken from a run.
type Speed = fn(&Simulated) -> Option<f64>;

impl Sensitivity {
    /// Measures slopes with that relative step: central differences, or one-sided ones where the
    /// parameter is at a limit. Strategies decide anew in each run, so a decision that changes within
    /// the step shows as a jump.
    ///
    /// # Errors
    /// When a run fails.
    pub fn new(base: &Scenario, step: f64) -> Result<Sensitivity, SimulateError> {
        let mut runs = Runs::default();
        let here = runs.run(base)?;
        let (mut parameters, mut skipped) = (Vec::new(), Vec::new());
        for parameter in base.parameters() {
            match ends(&parameter, step) {
                Ok(ends) => parameters.push(slope(base, parameter, ends, &here, &mut runs)?),
                Err(reason) => {
                    let (key, value) = (parameter.key, parameter.value.to_string());
                    skipped.push(Skipped { key, value, reason: reason.to_owned() });
                }
            }
        }
        let size = |s: &Slope| {
            let relative = [s.prefill_elasticity, s.decode_elasticity];
            relative.into_iter().flatten().fold(0.0, |most: f64, e| most.max(e.abs()))
        };
        parameters.sort_by(|a, b| size(b).total_cmp(&size(a)).then_with(|| a.key.cmp(&b.key)));
        let measurements = measurements::of(base, &parameters)?;
        Ok(Sensitivity {
            prefill_tokens_per_second: here.prefill_tokens_per_second,
            decode_tokens_per_second: here.decode_tokens_per_second,
            step,
            parameters,
            skipped,
            measurements,
        })
    }
}

/// The two values between which a slope is measured, or the reason why there is none.
fn ends(parameter: &ParameterValue, step: f64) -> Result<Range<f64>, &'static str> {
    let ParameterValue { key, value, .. } = parameter;
    if WHOLE_NUMBERS.contains(&&**key) {
        return Err("it must be an integer");
    }
    if !value.is_finite() {
        return Err("it is infinite");
    }
    let change = if *value == 0.0 { step } else { value * step };
    let possible = |value: f64| Soc::nearest_value(key, value).unwrap_or(value);
    let ends = possible(value - change)..possible(value + change);
    if ends.start < ends.end { Ok(ends) } else { Err("it cannot have another value") }
}

fn slope(
    base: &Scenario,
    parameter: ParameterValue,
    ends: Range<f64>,
    here: &Simulated,
    runs: &mut Runs,
) -> Result<Slope, SimulateError> {
    let mut at = |value: f64| {
        let mut scenario = base.clone();
        scenario.set_parameter(&parameter.key, value)?;
        runs.run(&scenario)
    };
    let (down, up) = (at(ends.start)?, at(ends.end)?);
    let slope = |of: Speed| Some((of(&up)? - of(&down)?) / (ends.end - ends.start));
    let elasticity = |of: Speed| {
        let elasticity = slope(of)? * parameter.value / of(here)?;
        (parameter.value != 0.0 && elasticity.is_finite()).then_some(elasticity)
    };
    let prefill: Speed = |run| Some(run.prefill_tokens_per_second);
    let decode: Speed = |run| run.decode_tokens_per_second;
    Ok(Slope {
        prefill_slope: slope(prefill).unwrap_or_default(),
        prefill_elasticity: elasticity(prefill),
        decode_slope: slope(decode),
        decode_elasticity: elasticity(decode),
        key: parameter.key,
        value: parameter.value,
        unit: parameter.unit,
        status: parameter.status,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_at_a_limit_have_finite_slopes() {
        let mut base = Scenario::new("ideal").expect("a preset");
        for (key, value) in [("prompt", "64"), ("decode", "2"), ("power.co_run", "1")] {
            base.set(key, value).expect(key);
        }
        let found = Sensitivity::new(&base, 0.01).expect("slopes");
        let skipped: Vec<&str> = found.skipped.iter().map(|s| s.key.as_str()).collect();
        assert_eq!(skipped, ["memory.copy", "npu.tile"]);
        assert_eq!(found.parameters.len() + skipped.len(), base.parameters().len());
        for slope in &found.parameters {
            let numbers = [Some(slope.prefill_slope), slope.prefill_elasticity];
            let all = numbers.into_iter().chain([slope.decode_slope, slope.decode_elasticity]);
            assert!(all.flatten().all(f64::is_finite), "{slope:?}");
        }
        // Free synchronisation can only become more expensive.
        let sync = found.parameters.iter().find(|s| s.key == "sync.fast").expect("a slope");
        assert!(sync.decode_slope.is_some_and(|slope| slope < 0.0), "{sync:?}");
        assert_eq!(sync.decode_elasticity, None);
    }
}
