//! The times between the tokens of requests, and the rows of chunks that were limited for them.

use std::collections::BTreeMap;

use super::Timeline;
use crate::clock::Nanos;
use crate::event::Milestone;

/// The time between two moments at which tokens of a request arrived, without tokens in between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenGap {
    /// Earlier arrival.
    pub start: Nanos,
    /// Later arrival.
    pub end: Nanos,
}

impl TokenGap {
    /// Length in ns.
    pub fn duration(&self) -> u64 {
        self.end.0 - self.start.0
    }
}

/// The times between the tokens of one request. Tokens of one moment arrive together: accepted tokens of a draft.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TokenGaps {
    /// Target of the request, in ns.
    pub target: Option<u64>,
    /// Gaps by time; none if tokens arrived at fewer than two moments.
    pub gaps: Vec<TokenGap>,
}

impl TokenGaps {
    /// Length of the longest gap, in ns.
    pub fn worst(&self) -> Option<u64> {
        self.gaps.iter().map(TokenGap::duration).max()
    }

    /// Number of gaps longer than the target; none without a target.
    pub fn late(&self) -> Option<usize> {
        let target = self.target?;
        Some(self.gaps.iter().filter(|gap| gap.duration() > target).count())
    }
}

impl Timeline {
    /// By request: the times between its tokens, for requests that have a target or gaps. In a window, only gaps
    /// between tokens of the window count.
    pub fn token_gaps(&self) -> BTreeMap<u64, TokenGaps> {
        let targets = self.gap_targets.iter();
        let mut all: BTreeMap<u64, TokenGaps> = targets
            .map(|(request, target)| {
                (*request, TokenGaps { target: Some(*target), gaps: Vec::new() })
            })
            .collect();
        let mut latest: BTreeMap<u64, Nanos> = BTreeMap::new();
        for token in self.milestones.iter().filter(|of| of.milestone == Milestone::Token) {
            let before = latest.insert(token.request, token.at);
            if let Some(start) = before.filter(|before| *before < token.at) {
                all.entry(token.request).or_default().gaps.push(TokenGap { start, end: token.at });
            }
        }
        all
    }

    /// By limited chunk: its rows, which are the most of any span; none if its spans have no rows.
    pub(crate) fn limited_rows(&self) -> BTreeMap<u64, u32> {
        let mut rows: BTreeMap<u64, u32> = BTreeMap::new();
        for tags in self.outer().map(|span| &self.spans[span].tags).filter(|tags| tags.rows > 0) {
            if let Some(chunk) = tags.chunk.filter(|chunk| self.limited.contains_key(chunk)) {
                let most = rows.entry(chunk).or_default();
                *most = tags.rows.max(*most);
            }
        }
        rows
    }
}
