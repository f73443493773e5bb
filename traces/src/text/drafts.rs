//! Shows the passes of speculative decoding as a table.

use super::format::Align::{Left, Right};
use super::format::{duration, table};
use super::options::TextOptions;
use crate::report::{DraftReport, Report};

/// Passes by lane and role; empty without drafts.
pub(super) fn table_of(report: &Report, options: &TextOptions) -> String {
    let header = [
        ("lane", Left),
        ("role", Left),
        ("passes", Right),
        ("rows", Right),
        ("drafted", Right),
        ("accepted", Right),
        ("wasted rows", Right),
        ("cancelled", Right),
        ("busy time", Right),
        ("wasted", Right),
    ];
    let time = |nanos: u64| duration(nanos as f64, options.glyphs);
    let row = |drafts: &DraftReport| {
        [
            drafts.lane.clone(),
            drafts.role.to_owned(),
            drafts.passes.to_string(),
            drafts.rows.to_string(),
            drafts.drafted.to_string(),
            drafts.accepted.to_string(),
            drafts.wasted_rows.to_string(),
            drafts.cancelled.to_string(),
            time(drafts.busy_ns),
            time(drafts.wasted_ns),
        ]
    };
    let rows: Vec<_> = report.drafts.iter().map(row).collect();
    table("Speculative decoding", header, &rows, options)
}
