//! The order of a depth-first search through the tree of cached prefixes.

use std::cmp::Reverse;
use std::ops::Range;

use lapwing_traces::Nanos;

use super::candidate::Candidate;
use super::entry::PolicyEntry;
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
    /// The requests of the latest survey, sorted by their cached tokens and then by their numbers.
    sorted: Vec<Entry>,
    /// Scratch memory of a survey, reused by the next: each waiting request with its number of cached tokens, and whether
    /// `sorted` lacks it.
    now: Vec<(SequenceId, usize)>,
    is_new: Vec<bool>,
}

/// A waiting request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    sequence: SequenceId,
    /// Its cached tokens.
    matched: usize,
    /// How many of them the entry before it has, too.
    common: usize,
}

impl DfsWeight {
    /// Brings `sorted` up to date. Tokens are compared only for requests that are new, or of which more or less is
    /// cached than before: most are the same from one survey to the next.
    fn sort(&mut self, waiting: &[Candidate<'_>], prefixes: &dyn PrefixView) {
        let (mut now, mut is_new) =
            (std::mem::take(&mut self.now), std::mem::take(&mut self.is_new));
        now.clear();
        let matched = |request: &Candidate<'_>| prefixes.matched(request.sequence);
        now.extend(waiting.iter().map(|request| (request.sequence, matched(request))));
        now.sort_unstable();
        is_new.clear();
        is_new.resize(now.len(), true);
        // What an entry has in common with the last one that stays.
        let mut common_with_kept = usize::MAX;
        self.sorted.retain_mut(|entry| {
            common_with_kept = common_with_kept.min(entry.common);
            let known = (entry.sequence, entry.matched);
            let Ok(at) = now.binary_search(&known) else { return false };
            is_new[at] = false;
            entry.common = std::mem::replace(&mut common_with_kept, usize::MAX);
            true
        });
        for ((sequence, matched), _) in now.iter().zip(&is_new).filter(|(_, is_new)| **is_new) {
            self.insert(*sequence, *matched, prefixes);
        }
        (self.now, self.is_new) = (now, is_new);
    }

    fn insert(&mut self, sequence: SequenceId, matched: usize, prefixes: &dyn PrefixView) {
        let cached = |sequence: SequenceId, matched: usize| {
            let tokens = prefixes.tokens(sequence);
            &tokens[..matched.min(tokens.len())]
        };
        let own = cached(sequence, matched);
        let same = |other: &Entry| common(cached(other.sequence, other.matched), own);
        let at = self.sorted.partition_point(|other| {
            let (same, tokens) = (same(other), cached(other.sequence, other.matched));
            (&tokens[same..], other.sequence) < (&own[same..], sequence)
        });
        let before = at.checked_sub(1).map_or(0, |before| same(&self.sorted[before]));
        if let Some(after) = self.sorted.get(at) {
            self.sorted[at].common = same(after);
        }
        self.sorted.insert(at, Entry { sequence, matched: own.len(), common: before });
    }

    /// Adds entries of `sorted` to the order, of which those of a branch have more than `depth` tokens in common.
    fn visit_branches(&mut self, entries: Range<usize>, depth: usize) {
        let Range { start, end } = entries;
        let borders = (start..end).filter(|at| *at == start || self.sorted[*at].common == depth);
        let borders: Vec<usize> = borders.chain([end]).collect();
        let mut branches: Vec<Range<usize>> =
            borders.windows(2).map(|ends| ends[0]..ends[1]).collect();
        branches.sort_by_cached_key(|branch| {
            let sequences = self.sorted[branch.clone()].iter().map(|entry| entry.sequence);
            (Reverse(branch.len()), sequences.min())
        });
        branches.into_iter().for_each(|branch| self.visit(branch));
    }

    /// Adds entries of `sorted`, which have their first tokens in common, to the order.
    fn visit(&mut self, entries: Range<usize>) {
        let of = &self.sorted[entries.clone()];
        let [first, rest @ ..] = of else { return };
        let depth = rest.iter().map(|entry| entry.common).min().unwrap_or(first.matched);
        // Those that end here are the smallest, in order of their numbers.
        let ending = of.partition_point(|entry| entry.matched == depth);
        let start = entries.start + ending;
        if start < entries.end {
            self.visit_branches(start..entries.end, depth);
        }
        for at in entries.start..start {
            self.places.insert(self.sorted[at].sequence, self.places.len());
        }
    }
}

pub(super) const ENTRY: PolicyEntry = PolicyEntry::new(
    "dfs-weight",
    "depth-first through the tree of cached prefixes, the most requested branch first",
    &[],
    |_| Box::new(DfsWeight::default()),
);

impl QueuePolicy for DfsWeight {
    fn name(&self) -> &str {
        "dfs-weight"
    }

    fn survey(&mut self, waiting: &[Candidate<'_>], prefixes: &dyn PrefixView, _now: Nanos) {
        self.sort(waiting, prefixes);
        self.places.clear();
        self.visit(0..self.sorted.len());
    }

    fn rank(&self, request: &Candidate<'_>, _prefixes: &dyn PrefixView, _now: Nanos) -> Rank {
        // Running ones keep their pages.
        let place = self.places.get(&request.sequence).filter(|_| !request.running);
        Rank::by(place.map_or(-1.0, |place| *place as f64))
    }
}
