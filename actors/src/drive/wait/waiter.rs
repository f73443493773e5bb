//! Waits of a thread for a flag or a time.

use std::sync::Arc;
use std::time::Duration;

use lapwing_kernels::completion::Flag;
use lapwing_kernels::device::Notify;
use lapwing_traces::event::WaitMode;
use lapwing_traces::{Clock, Nanos};

use super::{Cores, LinkMode, Overshoot, Plan, Predicted, Predictor, WaitKey, WaitRecord};

mod spend;

use spend::Polled;

/// Cores that stay free beside a thread that chooses to poll.
const SPARE: usize = 1;

/// Waits for a flag, and records how the wait was spent. Belongs to one thread.
pub struct Waiter {
    mode: WaitMode,
    /// It parks where polling would not pay.
    chooses: bool,
    clock: Arc<dyn Clock>,
    cores: Cores,
    predictor: Predictor,
    overshoot: Option<Overshoot>,
    /// Called while it polls; sets the flag if the awaited run has ended.
    probe: Option<Notify>,
    /// Whether a run is under way.
    is_probing: bool,
}

impl std::fmt::Debug for Waiter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut debug = f.debug_struct("Waiter");
        debug.field("mode", &self.mode).field("cores", &self.cores);
        debug.field("overshoot", &self.overshoot).finish_non_exhaustive()
    }
}

/// The flag and kind of a wait.
#[derive(Debug)]
pub struct WaitFor<'a> {
    /// Set by the sender when a message may be available.
    pub flag: &'a Flag,
    /// Kind of wait.
    pub key: WaitKey,
}

impl Waiter {
    /// A waiter for the calling thread. If it may wait in mode `SleepThenSpin`, this measures the
    /// overshoot of the thread, which takes some milliseconds.
    pub fn new(mode: impl Into<LinkMode>, clock: Arc<dyn Clock>, cores: Cores) -> Waiter {
        let (mode, chooses) = match mode.into() {
            LinkMode::Chosen => (WaitMode::SleepThenSpin, true),
            LinkMode::Single => (WaitMode::Callback, false),
            LinkMode::Fixed(mode) => (mode, false),
        };
        let sleeps = mode == WaitMode::SleepThenSpin;
        let overshoot = sleeps.then(|| Overshoot::measure(&*clock));
        Waiter {
            mode,
            chooses,
            clock,
            cores,
            predictor: Predictor::default(),
            overshoot,
            probe: None,
            is_probing: true,
        }
    }

    /// Calls `probe` while the thread polls. The probe sets the flag if the awaited run has ended.
    #[must_use]
    pub fn with_probe(self, probe: Option<Notify>) -> Waiter {
        Waiter { probe, ..self }
    }

    /// Sets whether the next waits call the probe: only while a run is under way.
    pub fn set_probing(&mut self, is_probing: bool) {
        self.is_probing = is_probing;
    }

    fn probe(&self) -> Option<&Notify> {
        self.probe.as_ref().filter(|_| self.is_probing)
    }

    /// Wait mode of this thread; `SleepThenSpin` if it chooses.
    pub fn mode(&self) -> WaitMode {
        self.mode
    }

    /// The core count that all waiters share.
    pub fn cores(&self) -> &Cores {
        &self.cores
    }

    /// The overshoot of this thread's sleeps, if measured.
    pub fn overshoot(&self) -> Option<&Overshoot> {
        self.overshoot.as_ref()
    }

    /// Waits until `ready` returns a value. `ready` is called first, and again each time the flag is
    /// set. The record is `None` if the first call returned a value.
    ///
    /// In mode `Blocking`, which the channel implements, this parks.
    pub fn wait<T>(
        &mut self,
        what: WaitFor<'_>,
        mut ready: impl FnMut() -> Option<T>,
    ) -> (T, Option<WaitRecord>) {
        let WaitFor { flag, key } = what;
        // Cleared before the first call: a later message sets it again.
        flag.take();
        if let Some(found) = ready() {
            return (found, None);
        }
        let since = self.clock.now();
        let predicted = self.predictor.predict(key);
        let mut record = WaitRecord {
            mode: self.mode,
            since,
            end: since,
            predicted: predicted.map(|p| p.median),
            margin: 0,
            slept: 0,
            spun: 0,
            parked: 0,
        };
        let found = loop {
            self.until_set(flag, predicted, &mut record);
            flag.take();
            if let Some(found) = ready() {
                break found;
            }
        };
        record.end = self.clock.now();
        if matches!(record.mode, WaitMode::Callback | WaitMode::Blocking) {
            record.slept += std::mem::take(&mut record.parked);
        }
        self.predictor.learn(key, record.actual());
        (found, Some(record))
    }

    /// Records a wait from `since` to now that did not use [`Waiter::wait`]. It is predicted and learnt
    /// like any other wait.
    pub fn waited(&mut self, key: WaitKey, since: Nanos) -> WaitRecord {
        let end = self.clock.now();
        let record = WaitRecord {
            mode: self.mode,
            since,
            end,
            predicted: self.predictor.predict(key).map(|p| p.median),
            margin: 0,
            slept: end.0.saturating_sub(since.0),
            spun: 0,
            parked: 0,
        };
        self.predictor.learn(key, record.actual());
        record
    }

    /// Current time of the waiter's clock.
    pub fn now(&self) -> Nanos {
        self.clock.now()
    }

    /// Prepares for [`Waiter::until`]: measures the overshoot of this thread, unless already measured.
    pub fn measure(&mut self) {
        let clock = &*self.clock;
        self.overshoot.get_or_insert_with(|| Overshoot::measure(clock));
    }

    /// Waits until a time: sleeps, then polls the clock if a core is free.
    pub fn until(&mut self, at: Nanos) {
        let never = Flag::new();
        while self.clock.now() < at {
            self.until_set_or(&never, at);
        }
    }

    /// Waits until `ready` returns a value, at most until a time. `ready` is called first, and again
    /// each time the flag is set. Sleeps, then polls flag and clock if a core is free.
    pub fn wait_until<T>(
        &mut self,
        flag: &Flag,
        at: Nanos,
        mut ready: impl FnMut() -> Option<T>,
    ) -> Option<T> {
        loop {
            // Cleared before the call: a later message sets it again.
            flag.take();
            let found = ready();
            if found.is_some() || self.clock.now() >= at {
                return found;
            }
            self.until_set_or(flag, at);
        }
    }

    /// Returns when the flag is set or at a time, possibly earlier.
    fn until_set_or(&mut self, flag: &Flag, at: Nanos) {
        let margin = self.overshoot.as_ref().map_or(0, Overshoot::p90);
        let early = Nanos(at.0.saturating_sub(margin));
        if early > self.clock.now() && self.sleep(flag, early) {
            return;
        }
        if self.poll(flag, at.0, 0) == Polled::NoCore {
            let left = at.0.saturating_sub(self.clock.now().0);
            flag.park_timeout(Duration::from_nanos(left));
        }
    }

    /// Returns when the flag is set.
    fn until_set(&mut self, flag: &Flag, predicted: Option<Predicted>, record: &mut WaitRecord) {
        let plan = match self.mode {
            WaitMode::Spin => Some(Plan { margin: 0, sleep_until: 0, poll_until: u64::MAX }),
            WaitMode::SleepThenSpin => self.plan(predicted),
            WaitMode::Blocking | WaitMode::Callback => None,
        };
        let mut now = self.clock.now();
        if let Some(plan) = plan {
            record.margin = plan.margin;
            let until = Nanos(record.since.0.saturating_add(plan.sleep_until));
            if now < until {
                let set = self.sleep(flag, until);
                let since = std::mem::replace(&mut now, self.clock.now());
                record.slept += now.0.saturating_sub(since.0);
                if set {
                    return;
                }
            }
            let spare = if self.chooses { SPARE } else { 0 };
            let polled = self.poll(flag, record.since.0.saturating_add(plan.poll_until), spare);
            let since = std::mem::replace(&mut now, self.clock.now());
            record.spun += now.0.saturating_sub(since.0);
            match polled {
                Polled::Set => return,
                Polled::TooLong => {}
                Polled::NoCore => record.mode = WaitMode::Callback,
            }
        } else if self.mode == WaitMode::SleepThenSpin {
            record.mode = WaitMode::Callback;
        }
        self.park(flag, record.since);
        record.parked += self.clock.now().0.saturating_sub(now.0);
    }

    fn plan(&self, predicted: Option<Predicted>) -> Option<Plan> {
        let (predicted, overshoot) = (predicted?, self.overshoot.as_ref()?);
        if self.chooses && !(self.cores.has_free(SPARE) && Plan::pays(predicted, overshoot)) {
            return None;
        }
        Plan::new(predicted, overshoot)
    }
}

#[cfg(test)]
mod tests;
