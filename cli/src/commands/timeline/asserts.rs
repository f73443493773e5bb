//! Checks bounds on the numbers of a report.

use lapwing_traces::budget::{Budget, BudgetError};
use serde::Serialize;
use serde_json::Value;

use crate::cli::failure::Failure;
use crate::cli::visible::one_line;

/// A bound and its result.
#[derive(Debug, Serialize)]
pub(super) struct Asserted {
    metric: String,
    expected: String,
    /// `None` if the run does not have this number.
    value: Option<f64>,
    ok: bool,
}

impl Asserted {
    fn line(&self) -> String {
        let value = self.value.map_or("missing".to_owned(), |value| value.to_string());
        one_line(&format!("{} is {value}, expected {}", self.metric, self.expected))
    }
}

/// Checks the bounds against the report. An unknown metric is wrong usage; a metric without a value
/// violates its bound.
pub(super) fn check(budgets: &[Budget], printed: &Value) -> Result<Vec<Asserted>, Failure> {
    let check = |budget: &Budget| {
        let outcome = match budget.check(printed) {
            Ok(outcome) => Some(outcome),
            Err(BudgetError::Absent { .. }) => None,
            Err(error) => return Err(Failure::usage(format!("--assert: {error}"))),
        };
        Ok(Asserted {
            metric: budget.metric.clone(),
            expected: budget.expected(),
            value: outcome.map(|outcome| outcome.value),
            ok: outcome.is_some_and(|outcome| outcome.ok),
        })
    };
    budgets.iter().map(check).collect()
}

/// One line for each bound.
pub(super) fn text(asserted: &[Asserted]) -> String {
    let line = |one: &Asserted| {
        format!("{} {}\n", if one.ok { "kept:    " } else { "not kept:" }, one.line())
    };
    let lines: String = asserted.iter().map(line).collect();
    if lines.is_empty() { lines } else { format!("\n{lines}") }
}

/// A failure if a bound is violated.
pub(super) fn verdict(asserted: &[Asserted]) -> Result<(), Failure> {
    let failed: Vec<String> = asserted.iter().filter(|one| !one.ok).map(Asserted::line).collect();
    if failed.is_empty() {
        return Ok(());
    }
    Err(Failure::failed(format!("assertion failed: {}", failed.join("; "))))
}
