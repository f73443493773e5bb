//! Budgets: bounds on numbers of a report, such as `overlap>=0.6`, for tests of speed.

use std::fmt;
use std::str::FromStr;

use serde_json::Value;

/// How a value is compared with its bound.
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
    /// Longer signs first: `>=` begins with `>`.
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

/// A bound on a number of a report. Its text is `METRIC OP NUMBER`: METRIC is a path of the
/// report's JSON with dots, where an element of a list is named by its `name`, `cause` or position
/// (`requests.ttft_ms.p95`, `lanes.cpu.utilization`, `idle.hand-off.ns`), OP one of
/// `>= <= == != > <`.
#[derive(Clone, Debug, PartialEq)]
pub struct Budget {
    /// Path of the number.
    pub metric: String,
    /// How it is compared.
    pub comparison: Comparison,
    /// With what.
    pub bound: f64,
}

/// How a report stands to a budget.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outcome {
    /// The report's number.
    pub value: f64,
    /// Whether the budget is kept.
    pub ok: bool,
}

/// A budget that cannot be understood, or that does not fit the report.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum BudgetError {
    /// No comparison in it.
    #[error(
        "'{text}' compares nothing: write METRIC OP NUMBER with one of >= <= == != > <, as in 'overlap>=0.6'"
    )]
    NoComparison {
        /// The text.
        text: String,
    },
    /// Nothing before the comparison.
    #[error("'{text}' names no metric before '{sign}', as 'overlap>=0.6' does")]
    NoMetric {
        /// The text.
        text: String,
        /// The comparison's sign.
        sign: &'static str,
    },
    /// No number after the comparison.
    #[error("'{number}' in '{text}' is no number; write it like 0.6, 200 or 1e6, without a unit")]
    NotANumber {
        /// What stands there.
        number: String,
        /// The whole text.
        text: String,
    },
    /// The report has no such number.
    #[error("the report has no metric '{metric}'{}", alternatives(near))]
    Unknown {
        /// The path.
        metric: String,
        /// Paths that look like it, or lie below it.
        near: Vec<String>,
    },
    /// The run does not have this number.
    #[error("metric '{metric}' has no value in this run: nothing was recorded that it measures")]
    Absent {
        /// The path.
        metric: String,
    },
}

fn alternatives(near: &[String]) -> String {
    if near.is_empty() {
        return "; the JSON report has them all".to_owned();
    }
    format!("; there is {}", near.join(", "))
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
    /// Reads a budget.
    ///
    /// # Errors
    /// [`BudgetError`] when the text has no comparison, no metric, or no number.
    pub fn parse(text: &str) -> Result<Budget, BudgetError> {
        // Names of lanes and ops may hold a sign, bounds do not: the last one counts.
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

    /// What the number should be, such as `>= 0.6`.
    pub fn expected(&self) -> String {
        format!("{} {}", self.comparison.sign(), self.bound)
    }

    /// Compares a report, as JSON, with this budget.
    ///
    /// # Errors
    /// [`BudgetError::Unknown`] when the report has no such number, [`BudgetError::Absent`] when
    /// it is `null`.
    pub fn check(&self, report: &Value) -> Result<Outcome, BudgetError> {
        let metric = || self.metric.clone();
        match find(report, &self.metric) {
            Some(Value::Null) => Err(BudgetError::Absent { metric: metric() }),
            Some(Value::Number(number)) => {
                let value = number.as_f64().unwrap_or(f64::NAN);
                Ok(Outcome { value, ok: self.comparison.holds(value, self.bound) })
            }
            _ => Err(BudgetError::Unknown { metric: metric(), near: near(report, &self.metric) }),
        }
    }
}

/// Name of an element of a list.
fn name(element: &Value) -> Option<&str> {
    ["name", "cause"].iter().find_map(|key| element.get(key)?.as_str())
}

/// The value at a path. Names may hold dots, so each step takes the longest that fits.
fn find<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    if path.is_empty() {
        return Some(value);
    }
    let mut ends: Vec<usize> = path.match_indices('.').map(|(at, _)| at).collect();
    ends.push(path.len());
    ends.iter().rev().find_map(|end| {
        let inner = step(value, &path[..*end])?;
        find(inner, path.get(end + 1..).unwrap_or(""))
    })
}

fn step<'a>(value: &'a Value, key: &str) -> Option<&'a Value> {
    match value {
        Value::Object(map) => map.get(key),
        Value::Array(list) => {
            let named = list.iter().find(|element| name(element) == Some(key));
            named.or_else(|| list.get(key.parse::<usize>().ok()?))
        }
        _ => None,
    }
}

/// Most paths that an error names.
const NEAR_MAX: usize = 5;

/// Paths of numbers that look most like this one.
fn near(report: &Value, metric: &str) -> Vec<String> {
    let mut all = Vec::new();
    paths(report, "", &mut all);
    let inside = format!("{metric}.");
    let last = |path: &str| path.rsplit('.').next().unwrap_or("").to_owned();
    let mut ranked: Vec<(usize, String)> = all
        .into_iter()
        .map(|path| {
            let whole = distance(metric, &path);
            // A right last word with a wrong way to it is near, too.
            let word = distance(&last(metric), &last(&path)) + 1;
            (if path.starts_with(&inside) { 0 } else { whole.min(word) }, path)
        })
        .filter(|(distance, _)| *distance <= 2 + metric.len() / 4)
        .collect();
    ranked.sort();
    ranked.dedup();
    ranked.into_iter().take(NEAR_MAX).map(|(_, path)| path).collect()
}

fn paths(value: &Value, at: &str, found: &mut Vec<String>) {
    let below = |key: &str| if at.is_empty() { key.to_owned() } else { format!("{at}.{key}") };
    match value {
        Value::Object(map) => map.iter().for_each(|(k, inner)| paths(inner, &below(k), found)),
        Value::Array(list) => {
            for element in list {
                // Lists of pairs, such as histograms, have no names to offer.
                if let Some(name) = name(element) {
                    paths(element, &below(name), found);
                }
            }
        }
        Value::Number(_) | Value::Null => found.push(at.to_owned()),
        Value::Bool(_) | Value::String(_) => {}
    }
}

/// Fewest characters to add, leave out or replace to make one text of the other.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests;
