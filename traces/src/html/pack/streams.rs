//! Packs the targets of requests and the limits of chunks.

use std::collections::BTreeSet;

use crate::event::Limited;
use crate::html::columns::Columns;
use crate::timeline::Timeline;

/// Adds the limit of each chunk: 0 for none, 1 if it was kept short, and from 2 on the index of the stream that was due;
/// and the time in ns until it was due. Returns the numbers of the streams.
pub(super) fn streams(
    columns: &mut Columns,
    timeline: &Timeline,
    chunks: &BTreeSet<u64>,
) -> Vec<String> {
    let all: BTreeSet<u64> = timeline.limited.values().filter_map(|of| of.stream).collect();
    let streams: Vec<u64> = all.into_iter().collect();
    let limit = |limited: &Limited| match limited.stream {
        Some(stream) => 2 + streams.partition_point(|of| *of < stream) as u64,
        None => 1,
    };
    let limits = || chunks.iter().map(|chunk| timeline.limited.get(chunk));
    columns.plain("chunk.limit", limits().map(|of| of.map_or(0, limit)));
    columns.plain("chunk.slack", limits().map(|of| of.map_or(0, |of| of.slack)));
    streams.iter().map(u64::to_string).collect()
}

/// Adds the target of each request for the time between its tokens, in ns plus one; 0 for none.
pub(super) fn targets(columns: &mut Columns, timeline: &Timeline, requests: &BTreeSet<u64>) {
    let target = |request: &u64| timeline.gap_targets.get(request);
    let coded = |target: Option<&u64>| target.map_or(0, |ns| ns.saturating_add(1));
    columns.plain("request.target", requests.iter().map(target).map(coded));
}
