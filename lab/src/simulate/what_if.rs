//! What-if comparisons: a run with and without changes, and the parts of the critical path that
//! moved.

use lapwing_traces::analysis::diff::{Diff, Step};
use lapwing_traces::{Analysis, Timeline};
use serde::Serialize;

use super::change::Change;
use super::error::SimulateError;
use super::scenario::Scenario;
use super::simulated::Simulated;

/// A run without and with changes.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct WhatIf {
    /// Without the changes.
    pub before: Simulated,
    /// With the changes.
    pub after: Simulated,
    /// Relative change of the makespan: (after − before) / before.
    pub change: f64,
    /// Difference of each part of the critical path; they add up to the difference of the makespans.
    pub moved: Vec<Step>,
}

impl WhatIf {
    /// Makes both runs.
    ///
    /// # Errors
    /// When a key is unknown, or a run fails.
    pub fn new(base: &Scenario, changes: &[Change]) -> Result<WhatIf, SimulateError> {
        let mut changed = base.clone();
        changed.set_all(changes)?;
        changed.check_model()?;
        let ((before, first), (after, second)) = (base.record()?, changed.record()?);
        let (first, second) = (Timeline::new(&first), Timeline::new(&second));
        let (a, b) = (Analysis::new(&first), Analysis::new(&second));
        let diff = Diff::new((&first, &a), (&second, &b));
        let moved = diff.waterfall.into_iter().filter(|step| step.delta_ns != 0).collect();
        let change = after.makespan_ms / before.makespan_ms - 1.0;
        Ok(WhatIf { before, after, change, moved })
    }
}
