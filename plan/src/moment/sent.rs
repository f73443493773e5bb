//! Chunks that are sent one after the other, without an engine.

use std::sync::Arc;
use std::time::Duration;

use super::{Candidate, Haste, LaneWork, Moment, Prices, StepLoad};
use crate::rule::Rule;

/// Chunks that are sent one after the other, as the scheduler knows them.
pub(crate) struct Sent {
    now: Duration,
    flights: Vec<Flight>,
    devices: usize,
    steps: Vec<StepLoad>,
    in_flight: usize,
    /// Of each device, how many times as long as predicted it is taken to need; empty where predictions are taken as they are.
    slow: Vec<f64>,
}

struct Flight {
    since: Duration,
    end: Duration,
    lanes: Arc<[LaneWork]>,
}

impl Sent {
    /// None so far, on so many devices, beside streams with these steps, and with so many in flight at most.
    pub(crate) fn new(devices: usize, in_flight: usize, steps: Vec<StepLoad>) -> Sent {
        let (now, flights, slow) = Default::default();
        Sent { now, flights, devices, steps, in_flight, slow }
    }

    /// With a device that is taken to need so many times as long as predicted.
    pub(crate) fn with_slow(self, device: usize, factor: f64) -> Sent {
        let mut slow = vec![1.0; self.devices];
        slow[device] = factor;
        Sent { slow, ..self }
    }

    /// What the devices have to do once another chunk may be sent, with so many behind it.
    pub(crate) fn moment(&mut self, behind: usize) -> Moment {
        while self.flights.len() >= self.in_flight.max(1) {
            let first = self.flights.iter().map(|flight| flight.end).min().unwrap_or_default();
            self.now = self.now.max(first);
            self.flights.retain(|flight| flight.end > first);
        }
        let mut lanes = vec![LaneWork::default(); self.devices];
        for Flight { since, end, lanes: own } in &self.flights {
            let all = (*end - *since).as_secs_f64().max(1e-9);
            let left = (end.saturating_sub(self.now)).as_secs_f64() / all;
            for (lane, own) in lanes.iter_mut().zip(&**own) {
                lane.time += own.time.mul_f64(left);
                lane.longest = lane.longest.max(own.longest);
            }
        }
        let (steps, prices) = (self.steps.clone(), Prices::of(self.devices));
        let (behind, slow) = (behind as f64, self.slow.clone());
        Moment { lanes, steps, behind, prices, slow, ..Moment::default() }
    }

    /// Sends a chunk on one of its routes, chosen by a rule, with so many chunks behind it. Returns the place of the route.
    pub(crate) fn next(&mut self, candidates: &[Candidate], rule: Rule, behind: usize) -> usize {
        let choice = self.moment(behind).choose_by(rule, candidates, Haste::InTurn, |_| true);
        let lanes = Arc::clone(&candidates[choice.at].lanes);
        self.flights.push(Flight { since: self.now, end: self.now + choice.end, lanes });
        choice.at
    }
}
