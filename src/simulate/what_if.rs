//! What another processor would have changed: two runs, and which stretch of the critical path moved.

use lapwing_traces::analysis::diff::{Diff, Step};
use lapwing_traces::{Analysis, Timeline};
use serde::Serialize;

use super::change::Change;
use super::error::SimulateError;
use super::scenario::Scenario;
use super::simulated::Simulated;

/// A run, and the same with changes.
#[derive(Clone, Debug, Serialize)]
pub struct WhatIf {
    /// As it is.
    pub before: Simulated,
    /// With the changes.
    pub after: Simulated,
    /// (After − before) / before, of the makespan.
    pub change: f64,
    /// Stretches of the critical path that differ, by how much; the differences add up to that of
    /// the makespans.
    pub moved: Vec<Step>,
}

impl WhatIf {
    /// Makes both runs.
    ///
    /// # Errors
    /// When there is nothing of that name, or a run fails.
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
