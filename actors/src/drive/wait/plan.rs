//! The plan of a wait: how long to sleep, and how long to poll.

use super::{Overshoot, Predicted};

/// Maximum margin, in ns. A longer poll costs more than the tens of µs of a park.
pub const MARGIN_MAX_NS: u64 = 500_000;
/// Margin that is always accepted, however short the wait, in ns.
pub const MARGIN_MIN_NS: u64 = 150_000;

/// Smallest share of a wait that polling must save to pay: a hundredth. Below that, no run gets
/// noticeably faster, however much a poll costs.
const SAVED_MIN: u64 = 100;

/// The plan of a wait: sleep, poll, then park. All times are in ns from the start of the wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Time from the end of the sleep to the predicted end.
    pub margin: u64,
    /// End of the sleep; 0 if the wait is too short to sleep.
    pub sleep_until: u64,
    /// End of polling; without a message, the receiver then parks.
    pub poll_until: u64,
}

impl Plan {
    /// The plan from a predicted length and the overshoot of the thread:
    ///
    /// `margin = overshoot_p90 + earlier`, `sleep_until = median − margin`,
    /// `poll_until = median + min(later + 2·overshoot_p90, limit)`, where
    /// `limit = median/4`, at least [`MARGIN_MIN_NS`] and at most [`MARGIN_MAX_NS`].
    ///
    /// `None` if the prediction is too uncertain, which is if the margin exceeds the limit.
    pub fn new(predicted: Predicted, overshoot: &Overshoot) -> Option<Plan> {
        let Predicted { median, earlier, later } = predicted;
        let margin = overshoot.p90().saturating_add(earlier);
        let limit = (median / 4).clamp(MARGIN_MIN_NS, MARGIN_MAX_NS);
        if margin > limit {
            return None;
        }
        let sleep_until = median.saturating_sub(margin);
        let after = later.saturating_add(overshoot.p90().saturating_mul(2)).min(limit);
        Some(Plan {
            margin,
            // A sleep shorter than its median overshoot is useless.
            sleep_until: if sleep_until > overshoot.p50() { sleep_until } else { 0 },
            poll_until: median.saturating_add(after),
        })
    }
}

impl Plan {
    /// Whether polling saves enough of a wait of this predicted length. It saves the time to wake a
    /// parked thread, of which the median overshoot of the thread's sleeps is a measurement.
    pub fn pays(predicted: Predicted, overshoot: &Overshoot) -> bool {
        overshoot.p50().saturating_mul(SAVED_MIN) >= predicted.median
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(median: u64, spread: u64, overshoot: u64) -> Option<Plan> {
        let predicted = Predicted { median, earlier: spread, later: spread };
        Plan::new(predicted, &Overshoot::of([overshoot; 32]))
    }

    #[test]
    fn the_sleep_ends_before_an_early_message_despite_overshoot() {
        let plan = plan(1_000_000, 50_000, 80_000).unwrap();
        assert_eq!(plan.margin, 130_000);
        assert_eq!(plan.sleep_until + 80_000, 1_000_000 - 50_000);
        assert_eq!(plan.poll_until, 1_000_000 + 50_000 + 160_000);
    }

    #[test]
    fn a_wait_too_short_to_sleep_is_polled() {
        let plan = plan(100_000, 5_000, 80_000).unwrap();
        assert_eq!((plan.sleep_until, plan.poll_until), (0, 250_000));
    }

    #[test]
    fn polling_pays_where_a_wake_is_a_hundredth_of_the_wait() {
        let pays = |median: u64| {
            let predicted = Predicted { median, earlier: 0, later: 0 };
            Plan::pays(predicted, &Overshoot::of([50_000; 32]))
        };
        assert!(pays(100_000) && pays(5_000_000));
        assert!(!pays(5_000_001) && !pays(u64::MAX));
    }

    #[test]
    fn a_wait_of_unknown_length_is_not_polled() {
        assert_eq!(plan(5_000_000_000, 1_000_000_000, 80_000), None);
        assert_eq!(plan(500_000, 200_000, 30_000), None);
        assert_eq!(plan(u64::MAX, u64::MAX, u64::MAX), None);
    }
}
