//! Computes percentiles.

use super::Percentiles;

impl Percentiles {
    /// Percentiles by nearest rank: the p-th percentile is the smallest value such that at least p
    /// % of all values are not above it. Values that are not finite are ignored.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Percentiles {
        let mut sorted: Vec<f64> = values.into_iter().filter(|value| value.is_finite()).collect();
        sorted.sort_unstable_by(f64::total_cmp);
        let count = sorted.len();
        let rank = |percent: usize| {
            let rank = (count * percent).div_ceil(100).max(1);
            sorted.get(rank - 1).copied()
        };
        Percentiles {
            count,
            mean: (count > 0).then(|| sorted.iter().sum::<f64>() / count as f64),
            min: sorted.first().copied(),
            p50: rank(50),
            p90: rank(90),
            p95: rank(95),
            p99: rank(99),
            max: sorted.last().copied(),
        }
    }
}
