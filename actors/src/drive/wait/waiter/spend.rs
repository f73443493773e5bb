//! How a thread spends a wait: it parks, sleeps or polls.

use std::hint::spin_loop;
use std::time::Duration;

use lapwing_kernels::completion::Flag;
use lapwing_traces::Nanos;
use lapwing_traces::event::WaitMode;

use super::Waiter;

/// Checks of the flag between two readings of the clock.
const LOOKS: usize = 16;
/// Time between two readings of the clock from which a poll counts as preempted, in ns.
const PREEMPTED_NS: u64 = 300_000;
/// Readings of a clock that does not advance before a poll ends.
const STILL_MAX: u32 = 10_000;
/// Shortest and longest interval between two probes of a parked thread, in ns.
const PROBE_MIN_NS: u64 = 50_000;
const PROBE_MAX_NS: u64 = 5_000_000;
/// Why a poll ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Polled {
    Set,
    TooLong,
    NoCore,
}

impl Waiter {
    /// Parks until the flag is set. A thread that may poll also calls the probe, at intervals of 1/16 of the
    /// time that it has waited, so a notification that comes late delays it by at most 1/16.
    pub(super) fn park(&self, flag: &Flag, since: Nanos) {
        let Some(probe) = self.probe().filter(|_| self.mode == WaitMode::SleepThenSpin) else {
            return flag.park();
        };
        loop {
            let waited = self.clock.now().0.saturating_sub(since.0);
            let slice = (waited / 16).clamp(PROBE_MIN_NS, PROBE_MAX_NS);
            if flag.park_timeout(Duration::from_nanos(slice)) {
                return;
            }
            probe();
        }
    }

    /// Sleeps until the flag is set or until a time. Returns whether the flag is set.
    pub(super) fn sleep(&mut self, flag: &Flag, until: Nanos) -> bool {
        let mut now = self.clock.now();
        while now < until {
            let requested = until - now;
            if flag.park_timeout(requested) {
                return true;
            }
            let woken = self.clock.now();
            let slept = woken - std::mem::replace(&mut now, woken);
            if let (Some(overshoot), Some(over)) =
                (&mut self.overshoot, slept.checked_sub(requested))
            {
                overshoot.learn(u64::try_from(over.as_nanos()).unwrap_or(u64::MAX));
            }
            if slept == Duration::ZERO {
                // The clock does not advance, so no sleep would be long enough.
                break;
            }
        }
        flag.is_set()
    }

    /// Polls the flag until it is set, until a time (in ns), or until the core is needed, or one of the
    /// `spare` cores beside it.
    pub(super) fn poll(&self, flag: &Flag, until: u64, spare: usize) -> Polled {
        let Some(_busy) = self.cores.try_poll(spare) else {
            return if flag.is_set() { Polled::Set } else { Polled::NoCore };
        };
        let mut last = self.clock.now().0;
        let mut still = 0;
        while still < STILL_MAX {
            for _ in 0..LOOKS {
                if flag.is_set() {
                    self.cores.undisturbed();
                    return Polled::Set;
                }
                spin_loop();
            }
            if let Some(probe) = self.probe() {
                probe();
            }
            let now = self.clock.now().0;
            if now.saturating_sub(last) > PREEMPTED_NS {
                self.cores.preempted();
                return if flag.is_set() { Polled::Set } else { Polled::NoCore };
            }
            if !self.cores.may_go_on(spare) {
                return Polled::NoCore;
            }
            if now >= until {
                return Polled::TooLong;
            }
            still = if now == last { still + 1 } else { 0 };
            last = now;
        }
        Polled::TooLong
    }
}
