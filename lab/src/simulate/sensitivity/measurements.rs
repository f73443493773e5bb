//! Which measurement would tell most about a run.

use super::{Measurement, Slope};
use crate::simulate::error::SimulateError;
use crate::simulate::published::Published;
use crate::simulate::runs::Runs;
use crate::simulate::scenario::Scenario;
use crate::simulate::uncertainty::Uncertainty;

/// Relative standard errors of numbers that no pin is for.
const DERIVED: f64 = 0.1;
const ASSUMED: f64 = 0.3;

/// What a measurement of each of these parameters would tell.
pub(super) fn of(base: &Scenario, slopes: &[Slope]) -> Result<Vec<Measurement>, SimulateError> {
    if base.soc().is_err() || !slopes.iter().any(|slope| slope.status == "pinned") {
        return Ok(Vec::new());
    }
    let open = Uncertainty::new(base, &Published::built_in()?, &mut Runs::default())?;
    let prefill = shares(&open, slopes, |slope| slope.prefill_elasticity);
    let decodes = slopes.iter().any(|slope| slope.decode_slope.is_some());
    let decode = decodes.then(|| shares(&open, slopes, |slope| slope.decode_elasticity));
    let mut all: Vec<Measurement> = slopes
        .iter()
        .enumerate()
        .map(|(at, slope)| Measurement {
            key: slope.key.clone(),
            spread: spread(&open, slope),
            prefill_share: prefill[at],
            decode_share: decode.as_ref().map(|shares| shares[at]),
        })
        .collect();
    let tells = |one: &Measurement| one.prefill_share.max(one.decode_share.unwrap_or_default());
    all.retain(|one| tells(one) > 0.0);
    all.sort_by(|a, b| tells(b).total_cmp(&tells(a)).then_with(|| a.key.cmp(&b.key)));
    Ok(all)
}

fn place(open: &Uncertainty, slope: &Slope) -> Option<usize> {
    open.keys.iter().position(|key| *key == slope.key)
}

fn spread(open: &Uncertainty, slope: &Slope) -> f64 {
    match (place(open, slope), &*slope.status) {
        (Some(at), _) => open.covariance[at][at].sqrt(),
        (None, "assumed") => ASSUMED,
        (None, _) => DERIVED,
    }
}

/// Of the variance of a speed, the share that an exact measurement of each parameter would remove: cov² / variance of the parameter.
fn shares(open: &Uncertainty, slopes: &[Slope], elasticity: fn(&Slope) -> Option<f64>) -> Vec<f64> {
    let of = |slope: &Slope| elasticity(slope).unwrap_or_default();
    let mut pinned = vec![0.0; open.keys.len()];
    let mut others = 0.0;
    for slope in slopes {
        match place(open, slope) {
            Some(at) => pinned[at] = of(slope),
            None => others += (of(slope) * spread(open, slope)).powi(2),
        }
    }
    let all = open.variance(&pinned) + others;
    let together = open.products(&pinned);
    let share = |slope: &Slope| {
        let removed = match place(open, slope) {
            Some(at) => together[at].powi(2) / open.covariance[at][at],
            None => (of(slope) * spread(open, slope)).powi(2),
        };
        if all > 0.0 { removed / all } else { 0.0 }
    };
    slopes.iter().map(share).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::sensitivity::Sensitivity;

    #[test]
    fn a_measurement_of_the_least_known_number_that_matters_tells_most() {
        let mut base = Scenario::new("sd8gen3").expect("a preset");
        for (key, value) in [("prompt", "16"), ("decode", "2"), ("strategy", "gpu-only")] {
            base.set(key, value).expect(key);
        }
        let found = Sensitivity::new(&base, 0.01).expect("slopes").measurements;
        assert!(found.iter().all(|one| one.spread > 0.0 && one.prefill_share <= 1.0 + 1e-9));
        // 16 rows are a batched GEMV, whose rate no pin has.
        assert_eq!(found[0].key, "gpu.small_rate", "{found:?}");
    }
}
