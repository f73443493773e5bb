//! Trials of what does not pay, ever more rarely.

/// The fewest and the most that are left out between two trials.
const GAPS: (usize, usize) = (8, 128);

/// Says when to try what does not pay: after 8, 16, 32 … at most 128 that are left out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trials {
    /// To be left out before the next trial.
    until: usize,
    /// To be left out between that one and the one after it.
    gap: usize,
}

impl Trials {
    /// Trials of which the first comes after so many that are left out.
    pub(super) fn after(until: usize) -> Trials {
        Trials { until, gap: GAPS.0 }
    }

    /// Trials of what paid until now.
    pub(super) fn of_what_paid() -> Trials {
        Trials::after(GAPS.0)
    }

    /// Whether it is tried now; otherwise it is left out.
    pub(super) fn is_due(&mut self) -> bool {
        if self.until > 0 {
            self.until -= 1;
            return false;
        }
        self.until = self.gap;
        self.gap = (2 * self.gap).min(GAPS.1);
        true
    }
}
