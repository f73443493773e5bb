//! Bounds on what gates make, and on what they gate.

use super::Keys;
use crate::model::{ModelConfig, ModelError};
use crate::op::ExpertForm;

/// Which bounds on the gates of experts a file may state. What they gate is within ± the same bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::model) enum ExpertLimits {
    /// None.
    None,
    /// On the gate, before SiLU.
    Gates,
    /// On what SiLU makes of the gate.
    Activated,
}

/// Least bound: SiLU is never below −0.279.
const LEAST: f32 = 0.3;

impl Keys<'_> {
    /// The middle of the experts of each block of the file that bounds them.
    pub(super) fn bounded_forms(
        &self,
        config: &ModelConfig,
        limits: ExpertLimits,
    ) -> Result<Vec<Option<ExpertForm>>, ModelError> {
        const NAME: &str = "swiglu_clamp_exp";
        let gate_limit: fn(f32) -> f32 = match limits {
            ExpertLimits::None => return Ok(Vec::new()),
            ExpertLimits::Gates => |limit| limit,
            ExpertLimits::Activated => gate_of_silu,
        };
        let form = |limit| ExpertForm::ClampedGated {
            alpha: 1.0,
            gate_limit: gate_limit(limit),
            limit,
            offset: 0.0,
        };
        let limits = self.gate_limits(NAME, config)?;
        Ok(limits.into_iter().map(|limit| limit.map(form)).collect())
    }

    /// A bound for each block of the file, which has none where it is 0; no values without the key.
    pub(in crate::model) fn gate_limits(
        &self,
        name: &str,
        config: &ModelConfig,
    ) -> Result<Vec<Option<f32>>, ModelError> {
        let key = self.key(name);
        if self.meta.get(&key).is_none() {
            return Ok(Vec::new());
        }
        let limits = self.bare_numbers(&key, config.layers + config.predictors)?;
        let wrong = limits.iter().find(|limit| **limit != 0.0 && !(LEAST..=1e6).contains(*limit));
        self.check(name, wrong.copied().unwrap_or_default(), wrong.is_none(), || {
            format!("it must be 0, or between {LEAST} and 1000000")
        })?;
        Ok(limits.into_iter().map(|limit| Some(limit).filter(|limit| *limit > 0.0)).collect())
    }
}

/// The gate of which SiLU makes that positive value. As SiLU grows with all gates of which it makes something positive, the least of it
/// and a bound is the SiLU of the least of the gate and this.
fn gate_of_silu(value: f32) -> f32 {
    let value = f64::from(value);
    // SiLU takes less than 0.279 from a positive gate.
    let (mut low, mut high) = (value, value + 1.0);
    for _ in 0..64 {
        let middle = (low + high) / 2.0;
        match middle / (1.0 + (-middle).exp()) < value {
            true => low = middle,
            false => high = middle,
        }
    }
    high as f32
}

#[cfg(test)]
mod tests {
    use super::gate_of_silu;

    #[test]
    fn a_bound_on_silu_is_one_on_gates() {
        for value in [0.3_f32, 1.0, 7.0, 16.0, 1e6] {
            let gate = f64::from(gate_of_silu(value));
            let silu = gate / (1.0 + (-gate).exp());
            assert!((silu / f64::from(value) - 1.0).abs() < 2e-7, "{value}: {gate}, {silu}");
        }
    }
}
