//! What the steps of streams take of the devices.

use std::sync::Arc;

use lapwing_plan::moment::{LaneWork, StepLoad};
use lapwing_traces::Nanos;

/// The latest step of streams, and how often there is one.
#[derive(Default)]
pub(super) struct Steps {
    lanes: Arc<[LaneWork]>,
    latest: Nanos,
    /// Mean time from one to the next, in ns.
    period: f64,
}

impl Steps {
    /// Records a step that is sent, with its work on each device.
    pub(super) fn record(&mut self, lanes: &Arc<[LaneWork]>, now: Nanos) {
        let period = now.since(self.latest).as_nanos() as f64;
        // A stream that begins says nothing of the time between its steps.
        let is_next = self.period > 0.0 && period < PERIODS_MOST * self.period;
        let known = if is_next { self.period } else { period.min(PERIOD_FIRST) };
        self.period = known + WEIGHT * (period.min(PERIODS_MOST * known) - known);
        (self.latest, self.lanes) = (now, Arc::clone(lanes));
    }

    /// What steps take of each device; nothing once there have been none for a while.
    pub(super) fn load(&self, now: Nanos, loads: &mut Vec<StepLoad>) {
        loads.clear();
        if now.since(self.latest).as_nanos() as f64 > PERIODS_MOST * self.period {
            return;
        }
        let period = self.period.max(1.0);
        let of = |lane: &LaneWork| StepLoad {
            share: (lane.time.as_nanos() as f64 / period).min(1.0),
            part: lane.mean(),
        };
        loads.extend(self.lanes.iter().map(of));
    }
}

/// After so many times the usual time without a step, streams have ended.
const PERIODS_MOST: f64 = 8.0;

/// First time from one step to the next, in ns, at most.
const PERIOD_FIRST: f64 = 1e8;

/// Weight of a new time in the mean.
const WEIGHT: f64 = 0.25;
