//! The same run with several seeds of the noise.

use serde::Serialize;

use super::error::SimulateError;
use super::scenario::Scenario;
use super::simulated::Simulated;
use super::sweep::FIGURES;

/// Results of several runs that differ in their seeds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Repeated {
    /// Number of runs; their seeds follow that of the scenario.
    pub count: usize,
    /// Mean of each result that the runs have.
    pub means: Vec<Mean>,
}

/// The mean of a result, with a 95 % confidence interval of the mean from Student's t distribution.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Mean {
    /// Name of the result, as in [`FIGURES`].
    pub figure: &'static str,
    /// Mean.
    pub mean: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

impl Repeated {
    /// Most runs.
    pub const MAX: usize = 10_000;

    /// Runs the scenario `count` times, at least 2 and at most [`MAX`](Repeated::MAX).
    ///
    /// # Errors
    /// As [`Scenario::run`], and [`SimulateError::BadValue`] for another count.
    pub fn run(scenario: &Scenario, count: usize) -> Result<Repeated, SimulateError> {
        check_count(count)?;
        let mut runs = Vec::with_capacity(count);
        for at in 0..count as u64 {
            let mut scenario = scenario.clone();
            scenario.seed = scenario.seed.wrapping_add(at);
            runs.push(scenario.run()?);
        }
        Ok(Repeated::of(&runs))
    }

    fn of(runs: &[Simulated]) -> Repeated {
        let mean = |(figure, of): &super::sweep::Figure| {
            let values: Option<Vec<f64>> = runs.iter().map(of).collect();
            let (mean, half) = interval(&values?);
            Some(Mean { figure, mean, low: mean - half, high: mean + half })
        };
        Repeated { count: runs.len(), means: FIGURES.iter().filter_map(mean).collect() }
    }

    /// The mean of a result; `None` if the runs do not have it.
    pub fn mean(&self, figure: &str) -> Option<&Mean> {
        self.means.iter().find(|mean| mean.figure == figure)
    }
}

/// Checks a number of runs.
pub(super) fn check_count(count: usize) -> Result<(), SimulateError> {
    match (2..=Repeated::MAX).contains(&count) {
        true => Ok(()),
        false => Err(SimulateError::BadValue {
            key: "repeat".to_owned(),
            value: count.to_string(),
            expected: format!("it must be a whole number from 2 to {}", Repeated::MAX),
        }),
    }
}

/// Mean, and half the length of its 95 % confidence interval, of at least two values.
pub(super) fn interval(values: &[f64]) -> (f64, f64) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let error = (squares / (count - 1.0) / count).sqrt();
    (mean, student_t(values.len() - 1) * error)
}

/// The 97.5 % quantile of Student's t distribution, by its expansion in 1/degrees of freedom
/// (Abramowitz and Stegun, 1964, 26.7.5) from 5 degrees on.
fn student_t(degrees: usize) -> f64 {
    const FEW: [f64; 5] = [f64::INFINITY, 12.706, 4.303, 3.182, 2.776];
    if let Some(few) = FEW.get(degrees) {
        return *few;
    }
    let (x, n) = (1.959_964_f64, degrees as f64);
    let g1 = (x.powi(3) + x) / 4.0;
    let g2 = (5.0 * x.powi(5) + 16.0 * x.powi(3) + 3.0 * x) / 96.0;
    let g3 = (3.0 * x.powi(7) + 19.0 * x.powi(5) + 17.0 * x.powi(3) - 15.0 * x) / 384.0;
    x + g1 / n + g2 / n.powi(2) + g3 / n.powi(3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_those_of_students_t() {
        for (degrees, published) in [(1, 12.706), (5, 2.571), (9, 2.262), (30, 2.042), (120, 1.980)]
        {
            assert!((student_t(degrees) / published - 1.0).abs() < 2e-3, "{degrees}");
        }
        let (mean, half) = interval(&[1.0, 2.0, 3.0, 4.0, 5.0]);
        assert!((mean - 3.0).abs() < 1e-12 && (half - 2.776 * (0.5_f64).sqrt()).abs() < 1e-3);
    }

    #[test]
    fn noise_makes_an_interval_around_the_mean_and_its_absence_none() {
        let mut scenario = Scenario::new("sd8gen3").expect("a preset");
        (scenario.prompt, scenario.decode) = (64, 0);
        let still = Repeated::run(&scenario, 3).expect("runs");
        let time = still.mean("prefill_ms").expect("a time");
        assert!((time.high - time.low).abs() < 1e-9, "{time:?}");
        assert_eq!(still.mean("decode_ms"), None);
        scenario.set("noise.spread", "0.1").expect("a number");
        let noisy = Repeated::run(&scenario, 10).expect("runs");
        let time = noisy.mean("prefill_ms").expect("a time");
        assert!(time.low < time.mean && time.mean < time.high, "{time:?}");
        assert!(Repeated::run(&scenario, 1).is_err());
    }
}
