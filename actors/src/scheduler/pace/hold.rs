//! Until when steps are held back, and the alarm that the driver is asked for.

use std::time::Duration;

use lapwing_traces::Nanos;

use super::super::effect::SchedulerEffect;

/// Until when steps are held back.
#[derive(Clone, Copy, Debug, Default)]
pub(in super::super) struct Held {
    /// When the first of them is due.
    until: Option<Nanos>,
    /// The time for which the driver was asked.
    asked: Option<Nanos>,
}

impl Held {
    /// Forgets what was held; it is decided again.
    pub(in super::super) fn clear(&mut self) {
        self.until = None;
    }

    /// Whether a step is held back.
    pub(in super::super) fn is_any(&self) -> bool {
        self.until.is_some()
    }

    /// The driver has sent its message, and sends no other.
    pub(in super::super) fn on_alarm(&mut self) {
        self.asked = None;
    }

    /// Asks the driver for a message at the time of the first held step, if it has not been asked.
    pub(in super::super) fn ask(&mut self) -> Option<SchedulerEffect> {
        let is_new = self.until != self.asked;
        self.asked = self.until;
        is_new.then_some(SchedulerEffect::Alarm(self.until))
    }

    /// Holds a step back until that time.
    pub(super) fn add(&mut self, until: Nanos) {
        self.until = Some(self.until.map_or(until, |first| first.min(until)));
    }
}

/// Times of a step, in ns.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct StepTimes {
    /// From token to token, at most.
    pub(in super::super) gap: f64,
    /// Until the first of its streams has its token, at most.
    pub(in super::super) left: f64,
    /// What it takes longer alone than predicted.
    pub(super) more: f64,
}

/// A step is not held back for less than this share of what its streams may wait.
const HOLD_LEAST: f64 = 0.02;

impl StepTimes {
    /// How long it may be held back, if it is predicted to take so long from then on.
    pub(in super::super) fn hold(&self, end: Duration) -> Option<Duration> {
        let hold = self.left - end.as_nanos() as f64 - self.more;
        (hold > HOLD_LEAST * self.gap).then(|| Duration::from_nanos(hold as u64))
    }
}
