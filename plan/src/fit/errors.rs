//! Errors of predictions.

use std::fmt;

/// Statistics of the relative errors |predicted − measured| / measured at points left out of the fit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Errors {
    /// Number of points.
    pub points: usize,
    /// Median; infinite if no point could be left out.
    pub median: f64,
    /// 90th percentile; infinite if no point could be left out.
    pub p90: f64,
}

impl Errors {
    /// Statistics of any number of errors.
    pub fn of(mut errors: Vec<f64>) -> Errors {
        errors.sort_by(f64::total_cmp);
        let at = |share: f64| {
            let last = errors.len().checked_sub(1)?;
            errors.get((last as f64 * share).round() as usize).copied()
        };
        let [median, p90] = [at(0.5), at(0.9)].map(|e| e.unwrap_or(f64::INFINITY));
        Errors { points: errors.len(), median, p90 }
    }
}

impl fmt::Display for Errors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Errors { points, median, p90 } = self;
        if *points == 0 {
            return f.write_str("unknown: too few points");
        }
        let (median, p90) = (100.0 * median, 100.0 * p90);
        write!(f, "median {median:.1} %, p90 {p90:.1} % ({points} points)")
    }
}
