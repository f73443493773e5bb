//! Results of a run that a sweep reports.

use crate::simulate::error::SimulateError;
use crate::simulate::simulated::Simulated;

/// A result of a run that a sweep reports: its name and how to get it.
pub type Figure = (&'static str, fn(&Simulated) -> Option<f64>);

/// Results of a run, by their names in JSON and CSV.
pub const FIGURES: &[Figure] = &[
    ("prefill_ms", |run| Some(run.prefill_ms)),
    ("prefill_tokens_per_second", |run| Some(run.prefill_tokens_per_second)),
    ("decode_ms", |run| run.decode_ms),
    ("decode_tokens_per_second", |run| run.decode_tokens_per_second),
    ("makespan_ms", |run| Some(run.makespan_ms)),
    ("lower_bound_ms", |run| Some(run.lower_bound_ms)),
    ("preparation_ms", |run| Some(run.preparation_ms)),
    ("energy_j", |run| run.energy_j),
    ("power_w", |run| run.power_w),
    ("prefill_j", |run| run.prefill_j),
    ("prefill_w", |run| run.prefill_w),
    ("decode_j", |run| run.decode_j),
    ("decode_w", |run| run.decode_w),
    ("decode_gb_per_s", |run| run.decode_gb_per_s),
    ("overlap", |run| Some(run.overlap)),
    ("syncs", |run| Some(run.syncs as f64)),
    ("frames_per_second", |run| run.frames_per_second),
];

/// Results of a run by their names.
pub trait Results {
    /// The result of that name; `None` if the run does not have it.
    fn result(&self, name: &str) -> Option<f64>;
}

impl Results for Simulated {
    fn result(&self, name: &str) -> Option<f64> {
        FIGURES.iter().find(|figure| figure.0 == name).and_then(|figure| figure.1(self))
    }
}

/// The result with this name.
///
/// # Errors
/// [`SimulateError::BadValue`] lists the names.
pub fn figure(name: &str) -> Result<Figure, SimulateError> {
    FIGURES.iter().find(|figure| figure.0 == name).copied().ok_or_else(|| {
        let names: Vec<&str> = FIGURES.iter().map(|figure| figure.0).collect();
        SimulateError::BadValue {
            key: "figure".to_owned(),
            value: name.to_owned(),
            expected: format!("one of {}", names.join(", ")),
        }
    })
}
