//! Preble's priority groups.

use lapwing_plan::registry::Parameter;
use lapwing_traces::Nanos;

use super::candidate::Candidate;
use super::entry::PolicyEntry;
use super::prefix::PrefixView;
use super::queue_policy::QueuePolicy;
use super::rank::Rank;
use crate::sequence::SequenceId;

/// The local policy of Preble (Srivatsa et al., 2024): waiting requests are grouped by the share of their prompt that is
/// cached, group = ceil(share · `groups`) − 1. A pointer visits the groups from the last to the first and round
/// again; at each visit a group may admit (group + 1) · `quota` requests, in order of arrival. Requests with many
/// hits get more turns, and every group gets some.
#[derive(Clone, Debug)]
pub struct Preble {
    /// Number of groups (at least 1).
    pub groups: usize,
    /// Requests that a visit admits per group number.
    pub quota: usize,
    /// The group that is visited, and how many it may still admit.
    visit: (usize, usize),
    /// Group of each waiting request.
    of: foldhash::HashMap<SequenceId, usize>,
}

impl Default for Preble {
    fn default() -> Preble {
        Preble::new(10, 10)
    }
}

impl Preble {
    /// A pointer at the last group.
    pub fn new(groups: usize, quota: usize) -> Preble {
        let (groups, quota) = (groups.max(1), quota.max(1));
        Preble { groups, quota, visit: (groups - 1, groups * quota), of: Default::default() }
    }

    /// Groups between the visited one and this one, in the order of the visits.
    fn distance(&self, group: usize) -> usize {
        (self.visit.0 + self.groups - group) % self.groups
    }

    fn is_empty(&self, group: usize) -> bool {
        !self.of.values().any(|of| *of == group)
    }
}

pub(super) const ENTRY: PolicyEntry = PolicyEntry::new(
    "preble",
    "groups by the cached share of the prompt, visited in turn",
    &[
        Parameter::new("groups", "number of groups", 10.0, 1.0..=1e3),
        Parameter::new("quota", "admissions of a visit per group number", 10.0, 1.0..=1e6),
    ],
    |p| Box::new(Preble::new(p.count("groups"), p.count("quota"))),
);

impl QueuePolicy for Preble {
    fn name(&self) -> &str {
        "preble"
    }

    fn survey(&mut self, waiting: &[Candidate<'_>], prefixes: &dyn PrefixView, _now: Nanos) {
        let group = |request: &Candidate<'_>| {
            let hits = prefixes.matched(request.sequence) * self.groups;
            let group = hits.div_ceil(request.to_compute.max(1)).saturating_sub(1);
            (request.sequence, group.min(self.groups - 1))
        };
        let of: Vec<_> = waiting.iter().map(group).collect();
        self.of.clear();
        self.of.extend(of);
        let is_over = self.visit.1 == 0 || self.is_empty(self.visit.0);
        if is_over && !waiting.is_empty() {
            let from = self.visit.0 + self.groups;
            let next = (1..=self.groups).map(|step| (from - step) % self.groups);
            let next =
                next.into_iter().find(|group| !self.is_empty(*group)).unwrap_or(self.visit.0);
            self.visit = (next, (next + 1) * self.quota);
        }
    }

    fn rank(&self, request: &Candidate<'_>, _prefixes: &dyn PrefixView, _now: Nanos) -> Rank {
        let group = self.of.get(&request.sequence).filter(|_| !request.running);
        Rank::by(group.map_or(-1.0, |group| self.distance(*group) as f64))
    }

    fn admitted(&mut self, request: &Candidate<'_>, _now: Nanos) {
        if self.of.remove(&request.sequence) == Some(self.visit.0) {
            self.visit.1 = self.visit.1.saturating_sub(1);
        }
    }

    fn numbers(&self) -> Vec<(String, f64)> {
        let (group, left) = self.visit;
        vec![("group".to_owned(), group as f64), ("left of its quota".to_owned(), left as f64)]
    }
}
