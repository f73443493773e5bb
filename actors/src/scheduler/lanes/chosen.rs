//! The route of a chunk.

use std::sync::Arc;
use std::time::Duration;

use lapwing_plan::Route;
use lapwing_plan::moment::{Candidate, Choice, Haste, LaneWork, Moment};

use crate::scheduler::effect::{RatedRoute, RouteChosen};

/// A route that was chosen for a chunk, among those that it could take.
pub(in super::super) struct Chosen {
    pub(super) candidates: Arc<[Candidate]>,
    pub(super) choice: Choice,
    /// Whether it passes chunks that wait for its devices.
    pub(in super::super) haste: Haste,
    /// Whether it is a step of streams.
    pub(super) is_step: bool,
    /// How long the streams of a step may wait for its end, in ns; `None` for other chunks.
    pub(super) allowed: Option<f64>,
    /// A bit for each candidate that was better and whose graphs were not ready; `None` if the candidates were not compared.
    pub(super) unready: Option<u32>,
    /// Bytes that it reads and writes, by its time alone, in GB/s; 0 where that is not asked.
    pub(super) bandwidth: f64,
}

impl Chosen {
    pub(in super::super) fn route(&self) -> &Arc<Route> {
        &self.candidate().route
    }

    pub(super) fn candidate(&self) -> &Candidate {
        &self.candidates[self.choice.at]
    }

    /// Its predicted time alone.
    pub(in super::super) fn alone(&self) -> Duration {
        self.candidate().alone
    }

    /// The same for a chunk that takes so much bandwidth.
    pub(in super::super) fn taking(self, bandwidth: f64) -> Chosen {
        Chosen { bandwidth, ..self }
    }

    /// Its predicted work on each device.
    pub(in super::super) fn lanes(&self) -> Arc<[LaneWork]> {
        Arc::clone(&self.candidate().lanes)
    }

    /// How long a step may let others pass, so that its streams have their tokens just in time.
    pub(in super::super) fn spare(&self) -> Duration {
        let allowed = self.allowed.map_or(Duration::ZERO, |ns| Duration::from_nanos(ns as u64));
        allowed.saturating_sub(self.choice.end)
    }

    /// What a recording may tell of it, with the moment of the choice; `None` if there was no choice.
    pub(super) fn told(&self, moment: &Moment) -> Option<RouteChosen> {
        let (alone, Choice { end, first, .. }) = (&self.candidates[0], self.choice);
        let is_due = self.haste == Haste::Due;
        (is_due || self.candidates.len() > 1).then(|| RouteChosen {
            devices: Arc::clone(&self.candidate().devices),
            end,
            alone: Arc::clone(&alone.devices),
            alone_end: first,
            is_due,
            rated: self.rated(moment),
        })
    }

    /// All candidates, as they were compared.
    fn rated(&self, moment: &Moment) -> Box<[RatedRoute]> {
        let Some(unready) = self.unready else { return Box::default() };
        let rated = |(at, it): (usize, &Candidate)| RatedRoute {
            devices: Arc::clone(&it.devices),
            end: moment.end_of(it, Haste::InTurn),
            alone: it.alone,
            busy: moment.busy(it),
            is_ready: unready & (1 << at) == 0,
        };
        self.candidates.iter().enumerate().map(rated).collect()
    }
}
