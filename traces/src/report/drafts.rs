//! Computes the figures of speculative decoding.

use std::collections::{BTreeMap, HashSet};

use serde::Serialize;

use crate::event::{DraftRole, RowOutcome};
use crate::timeline::Timeline;

/// Passes of speculative decoding on a lane. A pass that crosses several lanes counts on each.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DraftReport {
    /// Lane.
    pub lane: String,
    /// `draft`: passes of a draft model; `verify`: passes of the model that verify drafted tokens.
    pub role: &'static str,
    /// Number of passes (chunks).
    pub passes: usize,
    /// Rows of these passes.
    pub rows: u64,
    /// Drafted tokens that they verified.
    pub drafted: u64,
    /// Those of them that were accepted.
    pub accepted: u64,
    /// Rows whose results were discarded.
    pub wasted_rows: u64,
    /// Passes of which every row was discarded.
    pub cancelled: usize,
    /// Time of the stages of all passes.
    pub busy_ns: u64,
    /// Part of `busy_ns` that belongs to cancelled passes.
    pub wasted_ns: u64,
}

/// Passes by lane and role.
pub(super) fn drafts(timeline: &Timeline) -> Vec<DraftReport> {
    let mut rows: BTreeMap<(usize, DraftRole), DraftReport> = BTreeMap::new();
    let mut seen: HashSet<(usize, u64)> = HashSet::new();
    for span in timeline.outer().map(|span| &timeline.spans[span]) {
        let (Some(role), Some(chunk)) = (span.tags.role, span.tags.chunk) else { continue };
        let report = rows.entry((span.lane, role)).or_insert_with(|| DraftReport {
            lane: timeline.lanes[span.lane].name.clone(),
            role: role.name(),
            passes: 0,
            rows: 0,
            drafted: 0,
            accepted: 0,
            wasted_rows: 0,
            cancelled: 0,
            busy_ns: 0,
            wasted_ns: 0,
        });
        report.busy_ns = report.busy_ns.saturating_add(span.duration());
        if span.discarded {
            report.wasted_ns = report.wasted_ns.saturating_add(span.duration());
        }
        if seen.insert((span.lane, chunk)) {
            let RowOutcome { drafted, accepted, wasted } =
                timeline.outcomes.get(&chunk).copied().unwrap_or_default();
            report.passes += 1;
            report.cancelled += usize::from(span.discarded);
            report.rows += u64::from(span.tags.rows);
            report.drafted += u64::from(drafted);
            report.accepted += u64::from(accepted);
            report.wasted_rows += u64::from(wasted);
        }
    }
    rows.into_values().collect()
}
