//! Computes the figures of streams: the times between their tokens, and the chunks that were limited for them.

use std::collections::BTreeMap;

use serde::Serialize;

use super::Percentiles;
use super::routed::{RoutedReport, ms, routed};
use crate::timeline::{Timeline, TokenGap, TokenGaps};

/// Times between the tokens of one request.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct TokenGapReport {
    /// Number of the request.
    pub request: u64,
    /// Number of gaps.
    pub count: usize,
    /// Longest gap, in ms.
    pub gap_max_ms: Option<f64>,
    /// Target of the request, in ms.
    pub gap_target_ms: Option<f64>,
    /// Number of gaps longer than the target; `null` without one.
    pub gaps_late: Option<usize>,
}

/// A chunk with fewer rows of prompts than there was room for.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LimitedReport {
    /// Number of the chunk.
    pub chunk: u64,
    /// All of its rows; `null` if none of its spans has rows.
    pub rows: Option<u32>,
    /// Request whose next token was due; `null` if chunks are kept short for requests without a target.
    pub stream: Option<u64>,
    /// Time until that token was due, in ms; `null` without such a request.
    pub slack_ms: Option<f64>,
}

/// Why chunks have the rows and the routes that they have.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct DecisionsReport {
    /// Chunks with fewer rows of prompts than there was room for, by number.
    pub limited: Vec<LimitedReport>,
    /// Chunks that could take several routes, by number.
    pub routed: Vec<RoutedReport>,
}

/// Gaps of all requests, in ms.
pub(super) fn spread(gaps: &BTreeMap<u64, TokenGaps>) -> Percentiles {
    let all = gaps.values().flat_map(|of| of.gaps.iter().map(TokenGap::duration));
    Percentiles::of(all.map(ms))
}

/// Number of gaps of all requests that are longer than their target; none if no request has one.
pub(super) fn late(gaps: &BTreeMap<u64, TokenGaps>) -> Option<usize> {
    gaps.values().filter_map(TokenGaps::late).reduce(|sum, late| sum + late)
}

pub(super) fn by_request(gaps: &BTreeMap<u64, TokenGaps>) -> Vec<TokenGapReport> {
    let report = |(request, of): (&u64, &TokenGaps)| TokenGapReport {
        request: *request,
        count: of.gaps.len(),
        gap_max_ms: of.worst().map(ms),
        gap_target_ms: of.target.map(ms),
        gaps_late: of.late(),
    };
    gaps.iter().map(report).collect()
}

pub(super) fn decisions(timeline: &Timeline) -> DecisionsReport {
    DecisionsReport { limited: limited(timeline), routed: routed(timeline) }
}

fn limited(timeline: &Timeline) -> Vec<LimitedReport> {
    let rows = timeline.limited_rows();
    let report = |limited: &crate::event::Limited| LimitedReport {
        chunk: limited.chunk,
        rows: rows.get(&limited.chunk).copied(),
        stream: limited.stream,
        slack_ms: limited.stream.map(|_| ms(limited.slack)),
    };
    timeline.limited.values().map(report).collect()
}

impl super::RequestsReport {
    /// The request whose longest gap is farthest beyond its target; none without late gaps.
    pub fn worst_gap(&self) -> Option<&TokenGapReport> {
        let late = self.gaps.iter().filter(|of| of.gaps_late.is_some_and(|late| late > 0));
        let excess = |of: &TokenGapReport| of.gap_max_ms.zip(of.gap_target_ms).map(|(a, b)| a - b);
        late.max_by(|a, b| excess(a).unwrap_or(0.0).total_cmp(&excess(b).unwrap_or(0.0)))
    }
}
