//! Whether predictions from a profile are reliable.

use super::errors::Errors;

/// Error above which predictions are doubtful; as a median it makes them unusable.
const ERROR_MAX: f64 = 0.3;
/// 90th percentile of the error above which predictions are unusable.
const P90_MAX: f64 = 1.0;
/// Smallest share of the planned points that must be measured.
const MEASURED_MIN: f64 = 0.5;

/// How far predictions from a profile can be trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trust {
    /// As far as their cross-validated error says.
    Good,
    /// The 90th percentile of the error is above 30 %: some predictions are far off.
    Doubtful {
        /// The reason.
        why: String,
    },
    /// Fewer than half of the planned points were measured, or the error is above 30 % at the median or
    /// 100 % at the 90th percentile. The devices' own models are the better choice.
    Unusable {
        /// The reason.
        why: String,
    },
}

impl Trust {
    /// The trust in a profile of which `points` of `asked` points were measured, with these
    /// cross-validated errors.
    pub(super) fn of(points: usize, asked: usize, errors: Errors) -> Trust {
        let enough = points as f64 >= MEASURED_MIN * asked as f64;
        let why = match enough {
            true => format!("the error of predictions from the profile is {errors}"),
            false => format!("only {points} of {asked} points were measured (error: {errors})"),
        };
        if !enough || errors.median > ERROR_MAX || errors.p90 > P90_MAX {
            Trust::Unusable { why }
        } else if errors.p90 > ERROR_MAX {
            Trust::Doubtful { why }
        } else {
            Trust::Good
        }
    }

    /// `good`, `doubtful` or `unusable`.
    pub fn name(&self) -> &'static str {
        match self {
            Trust::Good => "good",
            Trust::Doubtful { .. } => "doubtful",
            Trust::Unusable { .. } => "unusable",
        }
    }

    /// The reason, unless it is good.
    pub fn why(&self) -> Option<&str> {
        match self {
            Trust::Good => None,
            Trust::Doubtful { why } | Trust::Unusable { why } => Some(why),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_points_or_large_errors_make_a_profile_unusable() {
        let unknown = f64::INFINITY;
        for (points, median, p90, trust) in [
            ((351, 351), 0.05, 0.2, "good"),
            ((176, 351), 0.05, 0.3, "good"),
            ((351, 351), 0.05, 0.31, "doubtful"),
            ((351, 351), 0.3, 1.0, "doubtful"),
            ((351, 351), 0.31, 0.4, "unusable"),
            ((351, 351), 0.1, 1.1, "unusable"),
            ((11, 351), 0.05, 0.2, "unusable"),
            ((351, 351), unknown, unknown, "unusable"),
        ] {
            let errors = Errors { points: points.0, median, p90 };
            let found = Trust::of(points.0, points.1, errors);
            assert_eq!(found.name(), trust, "{points:?} {errors:?}");
            assert_eq!(found.why().is_none(), trust == "good");
        }
        let few = Trust::of(11, 351, Errors { points: 11, median: 0.5, p90: 3.0 });
        assert!(few.why().is_some_and(|why| why.contains("11 of 351 points")), "{few:?}");
    }
}
