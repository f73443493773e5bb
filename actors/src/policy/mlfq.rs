//! A multi-level feedback queue with skip-join.

use std::collections::HashMap;
use std::time::Duration;

use lapwing_plan::registry::Parameter;
use lapwing_traces::Nanos;

use super::candidate::{Candidate, Charge, End};
use super::entry::PolicyEntry;
use super::prefix::PrefixView;
use super::queue_policy::QueuePolicy;
use super::rank::Rank;
use crate::sequence::SequenceId;

/// A multi-level feedback queue with skip-join, as in FastServe (Wu et al., 2023): level i has the quantum
/// `quantum` · 2^i of tokens (prompt rows and generated ones). A new request joins the first level whose quantum its
/// prompt does not exceed, and moves down one level each time it has used the quantum of its level. A request
/// that has waited for `starvation` goes to the top with a fresh quantum. Within a level, requests go in order of
/// arrival; one of a better level takes pages from one of a worse level.
#[derive(Clone, Debug)]
pub struct Mlfq {
    /// Tokens of the first level.
    pub quantum: f64,
    /// Number of levels (at least 1); the last one has no quantum.
    pub levels: usize,
    /// Time of waiting after which a request is promoted.
    pub starvation: Duration,
    requests: HashMap<SequenceId, Place>,
}

#[derive(Clone, Copy, Debug)]
struct Place {
    level: usize,
    used: f64,
    /// Since when it waits.
    waits: Nanos,
}

impl Mlfq {
    /// An empty queue.
    pub fn new(quantum: f64, levels: usize, starvation: Duration) -> Mlfq {
        Mlfq { quantum, levels: levels.max(1), starvation, requests: HashMap::new() }
    }

    fn quantum_of(&self, level: usize) -> f64 {
        match level + 1 < self.levels {
            true => self.quantum * 2_f64.powi(level as i32),
            false => f64::INFINITY,
        }
    }

    fn is_starving(&self, place: &Place, now: Nanos) -> bool {
        now.since(place.waits) >= self.starvation
    }
}

pub(super) const ENTRY: PolicyEntry = PolicyEntry::new(
    "mlfq",
    "multi-level feedback queue with skip-join",
    &[
        Parameter::new("quantum", "tokens of the first level", 64.0, 1.0..=1e6),
        Parameter::new("levels", "number of levels", 8.0, 1.0..=32.0),
        Parameter::new("starvation", "seconds of waiting until promotion", 30.0, 0.001..=1e6),
    ],
    |p| Box::new(Mlfq::new(p.value("quantum"), p.count("levels"), p.seconds("starvation"))),
);

impl QueuePolicy for Mlfq {
    fn name(&self) -> &str {
        "mlfq"
    }

    fn rank(&self, request: &Candidate<'_>, _prefixes: &dyn PrefixView, now: Nanos) -> Rank {
        match self.requests.get(&request.sequence) {
            Some(place) if !request.running && self.is_starving(place, now) => Rank::by(0.0),
            Some(place) => Rank::by(place.level as f64),
            None => Rank::EQUAL,
        }
    }

    fn arrive(&mut self, request: &Candidate<'_>, now: Nanos) {
        let rows = request.prompt_tokens as f64;
        let level = (0..self.levels).find(|level| rows <= self.quantum_of(*level)).unwrap_or(0);
        self.requests.insert(request.sequence, Place { level, used: 0.0, waits: now });
    }

    fn admitted(&mut self, request: &Candidate<'_>, now: Nanos) {
        let starving =
            self.requests.get(&request.sequence).is_some_and(|place| self.is_starving(place, now));
        if let Some(place) = self.requests.get_mut(&request.sequence).filter(|_| starving) {
            (place.level, place.used) = (0, 0.0);
        }
    }

    fn charge(&mut self, request: &Candidate<'_>, charge: Charge, _now: Nanos) {
        let Some(mut place) = self.requests.get(&request.sequence).copied() else { return };
        place.used +=
            (charge.prompt_rows + charge.recomputed_rows + charge.generated_tokens) as f64;
        while place.used > self.quantum_of(place.level) {
            place.used -= self.quantum_of(place.level);
            place.level += 1;
        }
        self.requests.insert(request.sequence, place);
    }

    fn evicted(&mut self, request: &Candidate<'_>, _rows: usize, now: Nanos) {
        if let Some(place) = self.requests.get_mut(&request.sequence) {
            place.waits = now;
        }
    }

    fn finish(&mut self, request: &Candidate<'_>, _end: End, _now: Nanos) {
        self.requests.remove(&request.sequence);
    }

    fn numbers(&self) -> Vec<(String, f64)> {
        let at = |level| self.requests.values().filter(|place| place.level == level).count();
        (0..self.levels).map(|level| (format!("level {level}"), at(level) as f64)).collect()
    }
}
