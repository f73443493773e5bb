//! When to sleep and when to poll.

use super::{Overshoot, Predicted};

/// A margin above this is not worth polling for, in ns: a park costs some ten µs.
pub const MARGIN_MAX_NS: u64 = 500_000;
/// A margin up to this is worth it however short the wait, in ns.
pub const MARGIN_MIN_NS: u64 = 150_000;

/// A wait in advance: sleep, poll, park. All in ns from its beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Sleeping is to end this much before the predicted end.
    pub margin: u64,
    /// Sleep until then; 0 where the wait is too short for a sleep.
    pub sleep_until: u64,
    /// Poll until then, and park if there is still no message.
    pub poll_until: u64,
}

impl Plan {
    /// A wait that is predicted so, on a thread that oversleeps so:
    ///
    /// `margin = overshoot_p90 + earlier`, `sleep_until = median − margin`,
    /// `poll_until = median + min(later + 2·overshoot_p90, limit)`, where
    /// `limit = median/4`, at least [`MARGIN_MIN_NS`] and at most [`MARGIN_MAX_NS`]
    ///
    /// None if the length of such waits is too uncertain: the margin would be above the limit.
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
            // A shorter sleep would be over before the operating system has begun it.
            sleep_until: if sleep_until > overshoot.p50() { sleep_until } else { 0 },
            poll_until: median.saturating_add(after),
        })
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
    fn sleeping_ends_early_enough_even_if_it_oversleeps_and_the_message_is_early() {
        let plan = plan(1_000_000, 50_000, 80_000).unwrap();
        assert_eq!(plan.margin, 130_000);
        assert_eq!(plan.sleep_until + 80_000, 1_000_000 - 50_000);
        assert_eq!(plan.poll_until, 1_000_000 + 50_000 + 160_000);
    }

    #[test]
    fn a_wait_shorter_than_a_sleep_is_only_polled() {
        let plan = plan(100_000, 5_000, 80_000).unwrap();
        assert_eq!((plan.sleep_until, plan.poll_until), (0, 250_000));
    }

    #[test]
    fn a_wait_of_unknown_length_is_not_polled() {
        assert_eq!(plan(5_000_000_000, 1_000_000_000, 80_000), None);
        assert_eq!(plan(500_000, 200_000, 30_000), None);
        assert_eq!(plan(u64::MAX, u64::MAX, u64::MAX), None);
    }
}
