//! Computes how long steps waited for data from a disk.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::event::Activity;
use crate::timeline::Timeline;

/// Steps (outer spans) of one name on a lane of which some waited for data from a disk, such as the weights of a model that is larger than
/// memory.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReadReport {
    /// Lane.
    pub lane: String,
    /// Name of the steps.
    pub step: String,
    /// Number of steps.
    pub steps: usize,
    /// Those of them that read.
    pub reading: usize,
    /// Time of all steps.
    pub busy_ns: u64,
    /// Part of `busy_ns` in which they waited for a disk.
    pub read_ns: u64,
    /// `read_ns` divided by `busy_ns`.
    pub share: f64,
    /// Bytes that were read.
    pub bytes: u64,
    /// Bandwidth in 10⁹ bytes per second of waiting. What is read while a step computes makes it higher than that of the disk.
    pub gb_per_s: Option<f64>,
}

/// Steps that read, by lane and name.
pub(super) fn reads(timeline: &Timeline) -> Vec<ReadReport> {
    let outermost = |mut span: usize| {
        while let Some(parent) = timeline.spans[span].parent {
            span = parent;
        }
        span
    };
    let mut of_step: BTreeMap<usize, (u64, u64)> = BTreeMap::new();
    for (index, span) in timeline.spans.iter().enumerate() {
        if span.activity == Activity::Read {
            let (ns, bytes) = of_step.entry(outermost(index)).or_default();
            *ns = ns.saturating_add(span.duration());
            *bytes = bytes.saturating_add(span.tags.bytes);
        }
    }
    let mut rows: BTreeMap<(usize, &str), ReadReport> = BTreeMap::new();
    for (step, (ns, bytes)) in &of_step {
        let span = &timeline.spans[*step];
        let row = rows.entry((span.lane, &span.name)).or_insert_with(|| ReadReport {
            lane: timeline.lanes[span.lane].name.clone(),
            step: span.name.clone(),
            steps: 0,
            reading: 0,
            busy_ns: 0,
            read_ns: 0,
            share: 0.0,
            bytes: 0,
            gb_per_s: None,
        });
        row.reading += 1;
        row.read_ns = row.read_ns.saturating_add(*ns);
        row.bytes = row.bytes.saturating_add(*bytes);
    }
    for span in timeline.outer().map(|span| &timeline.spans[span]) {
        if let Some(row) = rows.get_mut(&(span.lane, &*span.name)) {
            row.steps += 1;
            row.busy_ns = row.busy_ns.saturating_add(span.duration());
        }
    }
    let ratio = |a: u64, b: u64| (b > 0).then(|| a as f64 / b as f64);
    let with_shares = |row: ReadReport| {
        let share = ratio(row.read_ns, row.busy_ns).unwrap_or(0.0);
        ReadReport { share, gb_per_s: ratio(row.bytes, row.read_ns), ..row }
    };
    rows.into_values().map(with_shares).collect()
}
