//! Budgets: bounds on numbers of a report, such as `overlap>=0.6`, for performance tests.

use std::fmt;
use std::str::FromStr;

use serde_json::Value;

mod path;

use path::{find, kinds, near, no_kind};

/// Comparison operator of a budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// `>=`
    AtLeast,
    /// `<=`
    AtMost,
    /// `==`
    Equal,
    /// `!=`
    Different,
    /// `>`
    Above,
    /// `<`
    Below,
}

impl Comparison {
    /// Longer operators first, because `>=` starts with `>`.
    const ALL: [(&'static str, Comparison); 6] = [
        (">=", Comparison::AtLeast),
        ("<=", Comparison::AtMost),
        ("==", Comparison::Equal),
        ("!=", Comparison::Different),
        (">", Comparison::Above),
        ("<", Comparison::Below),
    ];

    fn sign(self) -> &'static str {
        Comparison::ALL.iter().find(|(_, other)| *other == self).map_or("", |(sign, _)| sign)
    }

    fn holds(self, value: f64, bound: f64) -> bool {
        match self {
            Comparison::AtLeast => value >= bound,
            Comparison::AtMost => value <= bound,
            Comparison::Equal => value == bound,
            Comparison::Different => value != bound,
            Comparison::Above => value > bound,
            Comparison::Below => value < bound,
        }
    }
}

/// A bound on a number of a report, written `METRIC OP NUMBER`. METRIC is a dotted path in the
/// report's JSON; list elements are selected by their `name`, `cause` or position
/// (`requests.ttft_ms.p95`, `lanes.cpu.utilization`, `idle.hand-off.ns`); the name of an op also
/// selects the fused group that it is part of; kinds of work are joined by `+` in any order
/// (`concurrent.draft+verify+prompt`). OP is one of `>= <= == != > <`.
#[derive(Clone, Debug, PartialEq)]
pub struct Budget {
    /// Path of the number.
    pub metric: String,
    /// Comparison operator.
    pub comparison: Comparison,
    /// Bound.
    pub bound: f64,
}

/// Outcome of a budget check.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outcome {
    /// Value in the report.
    pub value: f64,
    /// Whether the budget is met.
    pub ok: bool,
}

/// A budget that cannot be parsed, or that does not apply to the report.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum BudgetError {
    /// There is no comparison operator.
    #[error(
        "'{text}' has no comparison: write METRIC OP NUMBER with one of >= <= == != > <, as in 'overlap>=0.6'"
    )]
    NoComparison {
        /// Budget as given.
        text: String,
    },
    /// There is no metric before the operator.
    #[error("'{text}' has no metric before '{sign}'; write for example 'overlap>=0.6'")]
    NoMetric {
        /// Budget as given.
        text: String,
        /// Operator.
        sign: &'static str,
    },
    /// There is no number after the operator.
    #[error(
        "'{number}' in '{text}' is not a number; write it like 0.6, 200 or 1e6, without a unit"
    )]
    NotANumber {
        /// Text after the operator.
        number: String,
        /// Budget as given.
        text: String,
    },
    /// The report has no such number.
    #[error("the report has no metric '{metric}'{}", alternatives(near))]
    Unknown {
        /// Path as given.
        metric: String,
        /// Similar paths, or paths below it.
        near: Vec<String>,
    },
    /// A word of the metric is no kind of work.
    #[error("'{word}' in '{metric}' is no kind of work; the kinds are {known}, joined by +", known = kinds())]
    NoKind {
        /// The word.
        word: String,
        /// Path as given.
        metric: String,
    },
    /// The number is `null` in this run.
    #[error(
        "metric '{metric}' has no value in this run: the run recorded nothing that it measures"
    )]
    Absent {
        /// Path as given.
        metric: String,
    },
}

fn alternatives(near: &[String]) -> String {
    if near.is_empty() {
        return "; see the JSON report for all metrics".to_owned();
    }
    format!("; similar metrics: {}", near.join(", "))
}

impl FromStr for Budget {
    type Err = BudgetError;

    fn from_str(text: &str) -> Result<Budget, BudgetError> {
        Budget::parse(text)
    }
}

impl fmt::Display for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.metric, self.expected())
    }
}

impl Budget {
    /// Parses a budget.
    ///
    /// # Errors
    /// [`BudgetError`] if the text has no comparison, no metric, or no number.
    pub fn parse(text: &str) -> Result<Budget, BudgetError> {
        // Names of lanes and ops may contain an operator, bounds cannot: the last operator counts.
        let signs = Comparison::ALL.iter().enumerate();
        let found = signs.filter_map(|(rank, (sign, comparison))| {
            let at = text.rfind(sign)?;
            Some((at + sign.len(), std::cmp::Reverse(rank), at, *comparison))
        });
        let best = found.max_by_key(|(end, rank, ..)| (*end, *rank));
        let Some((end, _, at, comparison)) = best else {
            return Err(BudgetError::NoComparison { text: text.to_owned() });
        };
        let (metric, number) = (text[..at].trim(), text[end..].trim());
        if metric.is_empty() {
            return Err(BudgetError::NoMetric { text: text.to_owned(), sign: comparison.sign() });
        }
        let bound = number.parse::<f64>().ok().filter(|bound| bound.is_finite());
        let bound = bound.ok_or_else(|| BudgetError::NotANumber {
            number: number.to_owned(),
            text: text.to_owned(),
        })?;
        Ok(Budget { metric: metric.to_owned(), comparison, bound })
    }

    /// Operator and bound, such as `>= 0.6`.
    pub fn expected(&self) -> String {
        format!("{} {}", self.comparison.sign(), self.bound)
    }

    /// Checks the budget against a report in JSON form.
    ///
    /// # Errors
    /// [`BudgetError::Unknown`] if the report has no such number, [`BudgetError::Absent`] if it is
    /// `null`.
    pub fn check(&self, report: &Value) -> Result<Outcome, BudgetError> {
        let metric = || self.metric.clone();
        match find(report, &self.metric) {
            Some(Value::Null) => Err(BudgetError::Absent { metric: metric() }),
            Some(Value::Number(number)) => {
                let value = number.as_f64().unwrap_or(f64::NAN);
                Ok(Outcome { value, ok: self.comparison.holds(value, self.bound) })
            }
            _ => match no_kind(&self.metric) {
                Some(word) => Err(BudgetError::NoKind { word: word.to_owned(), metric: metric() }),
                None => {
                    Err(BudgetError::Unknown { metric: metric(), near: near(report, &self.metric) })
                }
            },
        }
    }
}

#[cfg(test)]
mod tests;
