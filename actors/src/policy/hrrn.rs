//! Highest response ratio next.

use std::collections::HashMap;

use lapwing_traces::Nanos;

use super::candidate::{Candidate, Charge, End};
use super::entry::PolicyEntry;
use super::prefix::PrefixView;
use super::queue_policy::QueuePolicy;
use super::rank::Rank;
use crate::sequence::SequenceId;

/// Highest response ratio next, in tokens: rank = −(prompt rows that the engine has computed since the request
/// arrived) / (rows that it needs itself and that are not cached). Short requests go first, and every request
/// gets there: its ratio grows while others are served. As in SGLang's scheduler.
#[derive(Clone, Debug, Default)]
pub struct Hrrn {
    computed: f64,
    /// Prompt rows computed before each request arrived.
    before: HashMap<SequenceId, f64>,
}

pub(super) const ENTRY: PolicyEntry =
    PolicyEntry::new("hrrn", "highest response ratio next, in tokens", &[], |_| {
        Box::new(Hrrn::default())
    });

impl QueuePolicy for Hrrn {
    fn name(&self) -> &str {
        "hrrn"
    }

    fn rank(&self, request: &Candidate<'_>, prefixes: &dyn PrefixView, _now: Nanos) -> Rank {
        let before = self.before.get(&request.sequence).copied().unwrap_or(self.computed);
        let uncached = request.to_compute.saturating_sub(prefixes.matched(request.sequence));
        match uncached {
            0 => Rank::by(f64::NEG_INFINITY),
            rows => Rank::by(-(self.computed - before) / rows as f64),
        }
    }

    fn arrive(&mut self, request: &Candidate<'_>, _now: Nanos) {
        self.before.insert(request.sequence, self.computed);
    }

    fn charge(&mut self, _request: &Candidate<'_>, charge: Charge, _now: Nanos) {
        self.computed += (charge.prompt_rows + charge.recomputed_rows) as f64;
    }

    fn finish(&mut self, request: &Candidate<'_>, _end: End, _now: Nanos) {
        self.before.remove(&request.sequence);
    }
}
