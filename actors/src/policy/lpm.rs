//! Longest prefix match.

use lapwing_plan::registry::Parameter;
use lapwing_traces::Nanos;

use super::candidate::Candidate;
use super::entry::PolicyEntry;
use super::prefix::PrefixView;
use super::queue_policy::QueuePolicy;
use super::rank::Rank;
use crate::sequence::SequenceId;

/// Longest prefix match, as in SGLang (Zheng et al., 2024): the request with the most cached tokens goes first. A
/// client whose prefix is hot can starve others.
///
/// Requests that share at least `shared` tokens with a waiting one, and find no more than that in the cache, go
/// after all others, so that one of them computes the prefix first. With more than `most` waiting requests the
/// order is that of arrival, because matching takes time.
#[derive(Clone, Debug)]
pub struct Lpm {
    /// Tokens in common from which requests wait for each other.
    pub shared: usize,
    /// Most waiting requests that are compared.
    pub most: usize,
    order: Order,
}

/// The order of the latest survey.
#[derive(Clone, Debug, Default)]
struct Order {
    too_many: bool,
    /// Ascending.
    after: Vec<SequenceId>,
}

impl Default for Lpm {
    fn default() -> Lpm {
        Lpm::new(32, 128)
    }
}

impl Lpm {
    /// With these numbers of tokens and requests.
    pub fn new(shared: usize, most: usize) -> Lpm {
        Lpm { shared, most, order: Order::default() }
    }

    /// Negative number of cached tokens; in order of arrival if there are too many requests.
    pub(super) fn key(&self, request: &Candidate<'_>, prefixes: &dyn PrefixView) -> f64 {
        match self.order.too_many {
            true => 0.0,
            false if self.order.after.binary_search(&request.sequence).is_ok() => 1.0,
            false => -(prefixes.matched(request.sequence) as f64),
        }
    }
}

pub(super) const MOST: Parameter =
    Parameter::new("most", "most waiting requests that are compared", 128.0, 0.0..=1e6);

pub(super) const ENTRY: PolicyEntry = PolicyEntry::new(
    "lpm",
    "longest prefix match: the most cached tokens first",
    &[Parameter::new("shared", "tokens in common from which requests wait", 32.0, 0.0..=1e6), MOST],
    |p| Box::new(Lpm::new(p.count("shared"), p.count("most"))),
);

impl QueuePolicy for Lpm {
    fn name(&self) -> &str {
        "lpm"
    }

    fn survey(&mut self, waiting: &[Candidate<'_>], prefixes: &dyn PrefixView, _now: Nanos) {
        self.order = Order { too_many: waiting.len() > self.most, after: Vec::new() };
        if self.order.too_many || self.shared == 0 {
            return;
        }
        let mut by_arrival: Vec<SequenceId> =
            waiting.iter().map(|request| request.sequence).collect();
        by_arrival.sort_unstable();
        // Beginnings of the prompts that compute them. A prompt has a beginning of this length in common with one of
        // them if it begins with it.
        let mut first: foldhash::HashSet<&[u32]> = foldhash::HashSet::default();
        for sequence in by_arrival {
            if prefixes.matched(sequence) > self.shared {
                continue;
            }
            let Some(beginning) = prefixes.tokens(sequence).get(..self.shared) else { continue };
            if !first.insert(beginning) {
                self.order.after.push(sequence);
            }
        }
    }

    fn rank(&self, request: &Candidate<'_>, prefixes: &dyn PrefixView, _now: Nanos) -> Rank {
        Rank::by(self.key(request, prefixes))
    }
}
