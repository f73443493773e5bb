//! Computes the report from a timeline and its analysis.

use std::collections::{BTreeMap, HashSet};

use super::{
    CounterReport, FreedReport, IdleReport, LaneReport, MessageReport, OpReport, PairReport,
    PathReport, Percentiles, REPORT_VERSION, Report, TogetherReport,
};
use crate::analysis::critical_path::children;
use crate::analysis::interval::{busy_intervals, length};
use crate::analysis::{Analysis, Gap, IdleCause, SegmentKind, waits};
use crate::timeline::{Counter, Timeline};

impl Report {
    /// Computes the report of an analysed timeline.
    pub fn new(timeline: &Timeline, analysis: &Analysis) -> Report {
        let requests = super::requests::requests(timeline);
        let unknown = analysis.gaps.iter().filter(|gap| gap.cause == IdleCause::Unknown);
        let tokens = requests.generated_tokens;
        Report {
            version: REPORT_VERSION,
            meta: timeline.meta.clone(),
            makespan_ns: timeline.makespan(),
            spans: timeline.spans.len(),
            events_dropped: timeline.dropped,
            events_orphaned: timeline.orphans,
            overlap: analysis.overlap.ratio(),
            overlap_achievable: analysis.overlap.achievable(),
            overlap_efficiency: analysis.overlap.efficiency(),
            overlap_pairs: pairs(timeline, analysis),
            together: TogetherReport::of(timeline),
            lanes: lanes(timeline, analysis),
            idle: idle(timeline, computing(analysis)),
            idle_unattributed_ns: unknown
                .map(|gap| gap.end - gap.start)
                .fold(0, u64::saturating_add),
            critical_path: path_rows(timeline, analysis),
            ops: ops(timeline, analysis),
            waits: waits::reports(timeline),
            messages: messages(timeline),
            messages_per_token: (tokens > 0)
                .then(|| timeline.messages.len() as f64 / tokens as f64),
            requests,
            drafts: super::drafts::drafts(timeline),
            reads: super::reads::reads(timeline),
            experts: super::experts::experts(timeline),
            decisions: super::streams::decisions(timeline),
            counters: timeline.counters.iter().map(|c| counter(timeline, c)).collect(),
            freed: freed(timeline),
        }
    }
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

fn pairs(timeline: &Timeline, analysis: &Analysis) -> Vec<PairReport> {
    let overlap = &analysis.overlap;
    let name = |position: usize| timeline.lanes[overlap.lanes[position]].name.clone();
    let report = |(a, b, both_ns): &(usize, usize, u64)| PairReport {
        a: name(*a),
        b: name(*b),
        both_ns: *both_ns,
        ratio: share(*both_ns, overlap.busy[*a].min(overlap.busy[*b])),
    };
    overlap.pairs.iter().map(report).collect()
}

fn lanes(timeline: &Timeline, analysis: &Analysis) -> Vec<LaneReport> {
    let makespan = timeline.makespan();
    let wasted = wasted(timeline);
    let busy = busy_intervals(timeline);
    let mut spans = vec![0; timeline.lanes.len()];
    for span in timeline.outer() {
        spans[timeline.spans[span].lane] += 1;
    }
    let mut gaps: Vec<Vec<&Gap>> = vec![Vec::new(); timeline.lanes.len()];
    for gap in &analysis.gaps {
        gaps[gap.lane].push(gap);
    }
    let lanes = timeline.lanes.iter().enumerate();
    lanes
        .map(|(index, lane)| {
            let (spans, busy_ns) = (spans[index], length(&busy[index]));
            LaneReport {
                name: lane.name.clone(),
                kind: lane.kind.name(),
                slots: lane.slots,
                spans,
                busy_ns,
                idle_ns: if lane.slots == 0 { 0 } else { makespan - busy_ns },
                utilization: share(busy_ns, makespan),
                wasted_ns: wasted[index],
                idle: idle(timeline, gaps[index].iter().copied()),
            }
        })
        .collect()
}

/// By lane: duration of the outer spans whose results were discarded.
fn wasted(timeline: &Timeline) -> Vec<u64> {
    let mut wasted = vec![0_u64; timeline.lanes.len()];
    for span in timeline.outer().map(|span| &timeline.spans[span]).filter(|span| span.discarded) {
        wasted[span.lane] = wasted[span.lane].saturating_add(span.duration());
    }
    wasted
}

/// Gaps of the lanes that compute.
fn computing(analysis: &Analysis) -> impl Iterator<Item = &Gap> {
    let counting: HashSet<usize> = analysis.overlap.lanes.iter().copied().collect();
    analysis.gaps.iter().filter(move |gap| counting.contains(&gap.lane))
}

/// Idle time by cause, longest first.
fn idle<'a>(timeline: &Timeline, gaps: impl Iterator<Item = &'a Gap>) -> Vec<IdleReport> {
    let mut by_cause: BTreeMap<IdleCause, u64> = BTreeMap::new();
    for gap in gaps {
        let sum = by_cause.entry(gap.cause).or_default();
        *sum = sum.saturating_add(gap.end - gap.start);
    }
    let total = by_cause.values().copied().fold(0, u64::saturating_add);
    let mut rows: Vec<IdleReport> = by_cause
        .into_iter()
        .map(|(cause, ns)| IdleReport { cause: cause.title(timeline), ns, share: share(ns, total) })
        .collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.ns));
    rows
}

impl IdleCause {
    /// Name in reports; a dependency includes its lane, as in `dependency on gpu`.
    pub fn title(self, timeline: &Timeline) -> String {
        match self {
            IdleCause::Dependency(lane) => format!("dependency on {}", timeline.lanes[lane].name),
            cause => cause.name().to_owned(),
        }
    }
}

fn path_rows(timeline: &Timeline, analysis: &Analysis) -> Vec<PathReport> {
    let mut rows: BTreeMap<(usize, &str, &str), (u64, usize)> = BTreeMap::new();
    for segment in &analysis.critical_path.segments {
        let (cause, span) = match segment.kind {
            SegmentKind::Running(span) => ("running", span),
            SegmentKind::Waiting(cause, span) => (cause.name(), span),
        };
        let key = (segment.lane, cause, timeline.spans[span].name.as_str());
        let row = rows.entry(key).or_default();
        *row = (row.0 + (segment.end - segment.start), row.1 + 1);
    }
    let makespan = timeline.makespan();
    let mut table: Vec<PathReport> = rows
        .into_iter()
        .map(|((lane, cause, op), (ns, count))| PathReport {
            lane: timeline.lanes[lane].name.clone(),
            cause: cause.to_owned(),
            op: op.to_owned(),
            ns,
            share: share(ns, makespan),
            count,
        })
        .collect();
    table.sort_by_key(|row| std::cmp::Reverse(row.ns));
    table
}

/// Sums over the spans of one op on one lane.
#[derive(Default)]
struct OpSums {
    activity: &'static str,
    durations: Vec<f64>,
    total_ns: u64,
    self_ns: u64,
    critical_ns: u64,
    slack_min_ns: Option<u64>,
    bytes: u64,
    flops: u64,
}

fn ops(timeline: &Timeline, analysis: &Analysis) -> Vec<OpReport> {
    let inner = children(timeline);
    let mut rows: BTreeMap<(usize, &str), OpSums> = BTreeMap::new();
    for (index, span) in timeline.spans.iter().enumerate() {
        let sums = rows.entry((span.lane, span.name.as_str())).or_default();
        let inside = inner[index].iter().map(|child| timeline.spans[*child].duration());
        sums.activity = span.activity.name();
        sums.durations.push(span.duration() as f64);
        sums.total_ns = sums.total_ns.saturating_add(span.duration());
        let inside = inside.fold(0, u64::saturating_add);
        sums.self_ns = sums.self_ns.saturating_add(span.duration().saturating_sub(inside));
        sums.bytes = sums.bytes.saturating_add(span.tags.bytes);
        sums.flops = sums.flops.saturating_add(span.tags.flops);
        let slack = analysis.critical_path.slack[index];
        sums.slack_min_ns = Some(sums.slack_min_ns.map_or(slack, |least| least.min(slack)));
    }
    for segment in &analysis.critical_path.segments {
        if let SegmentKind::Running(span) = segment.kind {
            let span = &timeline.spans[span];
            let sums = rows.entry((span.lane, span.name.as_str())).or_default();
            sums.critical_ns += segment.end - segment.start;
        }
    }
    let per_ns = |count: u64, ns: u64| (count > 0 && ns > 0).then(|| count as f64 / ns as f64);
    let mut ops: Vec<OpReport> = rows
        .into_iter()
        .map(|((lane, name), sums)| OpReport {
            name: name.to_owned(),
            lane: timeline.lanes[lane].name.clone(),
            activity: sums.activity,
            count: sums.durations.len(),
            self_ns: sums.self_ns,
            critical_ns: sums.critical_ns,
            slack_min_ns: sums.slack_min_ns.unwrap_or(0),
            bytes: sums.bytes,
            flops: sums.flops,
            gb_per_s: per_ns(sums.bytes, sums.total_ns),
            gflop_per_s: per_ns(sums.flops, sums.total_ns),
            duration_ns: Percentiles::of(sums.durations),
        })
        .collect();
    ops.sort_by_key(|op| std::cmp::Reverse(op.self_ns));
    ops
}

fn messages(timeline: &Timeline) -> Vec<MessageReport> {
    let mut rows: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (index, message) in timeline.messages.iter().enumerate() {
        rows.entry(&message.name).or_default().push(index);
    }
    let report = |(name, indices): (&str, Vec<usize>)| {
        let all = || indices.iter().map(|index| &timeline.messages[*index]);
        let delays = all().filter_map(|m| Some((m.received?.0 - m.sent.0) as f64));
        let held = all().filter_map(|m| m.stall.map(|(_, since)| m.sent.0 - since.0));
        MessageReport {
            name: name.to_owned(),
            count: indices.len(),
            bytes: all().map(|m| m.bytes).fold(0, u64::saturating_add),
            lost: all().filter(|m| m.received.is_none()).count(),
            delay_ns: Percentiles::of(delays),
            held_ns: held.fold(0, u64::saturating_add),
        }
    };
    rows.into_iter().map(report).collect()
}

fn counter(timeline: &Timeline, counter: &Counter) -> CounterReport {
    let values = counter.values.iter().map(|(_, value)| *value);
    let (mut area, mut time) = (0.0, 0);
    for pair in counter.values.windows(2) {
        let span = pair[1].0.0 - pair[0].0.0;
        area += pair[0].1 as f64 * span as f64;
        time += span;
    }
    let last = values.clone().next_back().unwrap_or(0);
    CounterReport {
        name: counter.name.clone(),
        lane: timeline.lanes[counter.lane].name.clone(),
        min: values.clone().min().unwrap_or(0),
        max: values.max().unwrap_or(0),
        mean: if time > 0 { area / time as f64 } else { last as f64 },
        last,
    }
}

fn freed(timeline: &Timeline) -> Vec<FreedReport> {
    let mut rows: BTreeMap<&str, (usize, u64)> = BTreeMap::new();
    for freed in &timeline.freed {
        let row = rows.entry(&freed.name).or_default();
        *row = (row.0 + 1, row.1.saturating_add(freed.bytes));
    }
    let report =
        |(name, (count, bytes)): (&str, _)| FreedReport { name: name.to_owned(), count, bytes };
    rows.into_iter().map(report).collect()
}
