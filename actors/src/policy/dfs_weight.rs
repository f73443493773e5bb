//! The order of a depth-first search through the tree of cached prefixes.

use std::cmp::Reverse;

use lapwing_traces::Nanos;

use super::candidate::Candidate;
use super::prefix::PrefixView;
use super::queue_policy::QueuePolicy;
use super::rank::Rank;
use crate::prefix::common;
use crate::sequence::SequenceId;

/// Requests go in the order of a depth-first search through the tree of their cached prefixes, as in SGLang (Zheng
/// et al., 2024, which shows that this order has the best hit rate if all requests are known). Of the branches
/// of a node, the one with the most waiting requests below it goes first; the requests that end at a node come after
/// its branches. Requests of a rare prefix can starve.
#[derive(Clone, Debug, Default)]
pub struct DfsWeight {
    places: foldhash::HashMap<SequenceId, usize>,
}

/// A waiting request and the cached beginning of its tokens.
type Cached<'a> = (&'a [u32], SequenceId);

impl DfsWeight {
    /// Adds requests that have the first `depth` tokens in common, sorted, to the order.
    fn visit(&mut self, requests: &[Cached<'_>], depth: usize) {
        let [first, .., last] = requests else {
            requests.iter().for_each(|(_, sequence)| self.put(*sequence));
            return;
        };
        let depth = depth + common(&first.0[depth..], &last.0[depth..]);
        // Those that end here are the smallest.
        let ending = requests.partition_point(|(tokens, _)| tokens.len() == depth);
        let (here, mut rest) = requests.split_at(ending);
        let mut branches = Vec::new();
        while let [(tokens, _), ..] = rest {
            let next = tokens[depth];
            let (branch, others) = rest.split_at(rest.partition_point(|(t, _)| t[depth] == next));
            branches.push(branch);
            rest = others;
        }
        branches
            .sort_by_key(|branch| (Reverse(branch.len()), branch.iter().map(|(_, s)| *s).min()));
        branches.into_iter().for_each(|branch| self.visit(branch, depth));
        let mut here: Vec<SequenceId> = here.iter().map(|(_, sequence)| *sequence).collect();
        here.sort_unstable();
        here.into_iter().for_each(|sequence| self.put(sequence));
    }

    fn put(&mut self, sequence: SequenceId) {
        self.places.insert(sequence, self.places.len());
    }
}

impl QueuePolicy for DfsWeight {
    fn name(&self) -> &str {
        "dfs-weight"
    }

    fn survey(&mut self, waiting: &[Candidate<'_>], prefixes: &dyn PrefixView, _now: Nanos) {
        let mut cached: Vec<Cached<'_>> = waiting
            .iter()
            .map(|request| {
                let tokens = prefixes.tokens(request.sequence);
                let matched = prefixes.matched(request.sequence).min(tokens.len());
                (&tokens[..matched], request.sequence)
            })
            .collect();
        cached.sort_unstable_by(|(one, at), (other, then)| {
            // Prompts often have a long beginning in common.
            let same = common(one, other);
            one[same..].cmp(&other[same..]).then(at.cmp(then))
        });
        self.places.clear();
        self.visit(&cached, 0);
    }

    fn rank(&self, request: &Candidate<'_>, _prefixes: &dyn PrefixView, _now: Nanos) -> Rank {
        // Running ones keep their pages.
        let place = self.places.get(&request.sequence).filter(|_| !request.running);
        Rank::by(place.map_or(-1.0, |place| *place as f64))
    }
}
