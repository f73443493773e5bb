//! How much each parameter of a preset matters.

use serde::Serialize;

use super::{ParameterValue, Runs, Scenario, SimulateError, Simulated};

/// How a run depends on every parameter.
#[derive(Clone, Debug, Serialize)]
pub struct Sensitivity {
    /// Prompt tokens per second as it is.
    pub prefill_tokens_per_second: f64,
    /// Generated tokens per second as it is.
    pub decode_tokens_per_second: Option<f64>,
    /// Relative change by which slopes were measured, upwards and downwards.
    pub step: f64,
    /// Parameters, by what matters most.
    pub parameters: Vec<Slope>,
}

/// A parameter and its slopes.
#[derive(Clone, Debug, Serialize)]
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
    /// The same, as a ratio of relative changes: 1 means in proportion.
    pub prefill_elasticity: f64,
    /// ∂(generated tokens per second) / ∂(parameter).
    pub decode_slope: Option<f64>,
    /// As a ratio of relative changes.
    pub decode_elasticity: Option<f64>,
}

/// Whether only whole numbers mean anything, so that there is no slope.
fn is_whole(parameter: &ParameterValue) -> bool {
    parameter.key == "npu.tile" || parameter.unit == "cells"
}

impl Sensitivity {
    /// Measures central differences with that relative step. Strategies decide anew in each run, so
    /// that a decision that changes within the step shows as a jump.
    ///
    /// # Errors
    /// When a run fails.
    pub fn new(base: &Scenario, step: f64) -> Result<Sensitivity, SimulateError> {
        let mut runs = Runs::default();
        let here = runs.run(base)?;
        let mut parameters = Vec::new();
        for parameter in base.parameters() {
            if parameter.value == 0.0 || is_whole(&parameter) {
                continue;
            }
            let mut at = |factor: f64| {
                let mut scenario = base.clone();
                scenario.set_parameter(&parameter.key, parameter.value * factor)?;
                runs.run(&scenario)
            };
            let (up, down) = (at(1.0 + step)?, at(1.0 - step)?);
            let width = 2.0 * step * parameter.value;
            let slope = |of: fn(&Simulated) -> Option<f64>| {
                let (up, down, here) = (of(&up)?, of(&down)?, of(&here)?);
                let slope = (up - down) / width;
                Some((slope, slope * parameter.value / here))
            };
            let prefill = slope(|run| Some(run.prefill_tokens_per_second));
            let decode = slope(|run| run.decode_tokens_per_second);
            parameters.push(Slope {
                key: parameter.key,
                value: parameter.value,
                unit: parameter.unit,
                status: parameter.status,
                prefill_slope: prefill.map_or(0.0, |p| p.0),
                prefill_elasticity: prefill.map_or(0.0, |p| p.1),
                decode_slope: decode.map(|d| d.0),
                decode_elasticity: decode.map(|d| d.1),
            });
        }
        let size = |s: &Slope| {
            s.prefill_elasticity.abs().max(s.decode_elasticity.unwrap_or_default().abs())
        };
        parameters.sort_by(|a, b| size(b).total_cmp(&size(a)).then_with(|| a.key.cmp(&b.key)));
        Ok(Sensitivity {
            prefill_tokens_per_second: here.prefill_tokens_per_second,
            decode_tokens_per_second: here.decode_tokens_per_second,
            step,
            parameters,
        })
    }
}
