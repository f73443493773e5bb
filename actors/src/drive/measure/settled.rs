//! When an op was measured often enough.

use std::time::Duration;

/// Largest width of the confidence interval of the median, as a fraction of the median.
const WIDTH: f64 = 0.05;
/// Times that say nothing of the median of others, however near they are to each other.
const TIMES_MIN: usize = 9;

/// Whether the 95 % confidence interval of the median is narrow enough. Its ends are two of the sorted times, two standard deviations of
/// the median's rank before and after it.
pub(super) fn is_settled(times: &[Duration]) -> bool {
    if times.len() < TIMES_MIN {
        return false;
    }
    let mut sorted = times.to_vec();
    sorted.sort_unstable();
    let middle = sorted.len() / 2;
    let reach = (sorted.len() as f64).sqrt().ceil() as usize;
    let range = sorted[middle + reach] - sorted[middle - reach];
    range.as_secs_f64() <= WIDTH * sorted[middle].as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_median_is_settled_by_equal_times_or_by_many() {
        let times = |count: u64, step: u64| -> Vec<Duration> {
            (0..count).map(|i| Duration::from_micros(1000 + i * 37 % 101 * step)).collect()
        };
        assert!(!is_settled(&[]));
        assert!(!is_settled(&times(8, 0)), "too few");
        assert!(is_settled(&times(9, 0)));
        assert!(!is_settled(&times(21, 3)));
        assert!(is_settled(&times(505, 3)));
    }

    #[test]
    fn a_few_outliers_unsettle_no_median() {
        let mut times = vec![Duration::from_micros(100); 20];
        times.extend([Duration::from_secs(1); 5]);
        assert!(is_settled(&times));
    }
}
