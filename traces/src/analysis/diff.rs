//! Difference of two runs.
//!
//! Each makespan is the sum of the segments of its critical path. So the difference of the
//! makespans is the sum of the differences of all kinds of segments. Spans are matched by lane,
//! name, stage, layer, chunk and epoch; spans equal in all of these are matched in the order of
//! their start.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

use super::Analysis;
use crate::report::{PathReport, Report};
use crate::timeline::Timeline;

/// Second run minus first run. All times in ns.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Diff {
    /// Makespan of the first run.
    pub a_ns: u64,
    /// Makespan of the second run.
    pub b_ns: u64,
    /// `b_ns` − `a_ns`.
    pub delta_ns: i64,
    /// Differences of the critical paths, largest first; their deltas add up to `delta_ns`.
    pub waterfall: Vec<Step>,
    /// Ops, by the largest difference of their matched spans.
    pub ops: Vec<OpDelta>,
}

/// One kind of segment on both critical paths.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Step {
    /// Lane.
    pub lane: String,
    /// `running`, or the cause of waiting.
    pub cause: String,
    /// Op that ran, or that the path waited for.
    pub op: String,
    /// Time on the first run's path.
    pub a_ns: u64,
    /// Time on the second run's path.
    pub b_ns: u64,
    /// `b_ns` − `a_ns`.
    pub delta_ns: i64,
}

/// One op on a lane.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OpDelta {
    /// Lane.
    pub lane: String,
    /// Op.
    pub name: String,
    /// Number of spans in both runs.
    pub matched: usize,
    /// Number of spans only in the first run.
    pub only_a: usize,
    /// Number of spans only in the second run.
    pub only_b: usize,
    /// Time of the matched spans in the first run.
    pub a_ns: u64,
    /// Time of the matched spans in the second run.
    pub b_ns: u64,
    /// `b_ns` − `a_ns`.
    pub delta_ns: i64,
}

impl Diff {
    /// Compares two runs, simulated or real.
    pub fn new(a: (&Timeline, &Analysis), b: (&Timeline, &Analysis)) -> Diff {
        let (a_ns, b_ns) = (a.0.makespan(), b.0.makespan());
        Diff {
            a_ns,
            b_ns,
            delta_ns: delta(a_ns, b_ns),
            waterfall: waterfall(&Report::new(a.0, a.1), &Report::new(b.0, b.1)),
            ops: ops(a.0, b.0),
        }
    }
}

fn delta(a: u64, b: u64) -> i64 {
    b.cast_signed().wrapping_sub(a.cast_signed())
}

fn waterfall(a: &Report, b: &Report) -> Vec<Step> {
    let mut rows: BTreeMap<(&str, &str, &str), [u64; 2]> = BTreeMap::new();
    for (side, report) in [a, b].into_iter().enumerate() {
        for PathReport { lane, cause, op, ns, .. } in &report.critical_path {
            rows.entry((lane, cause, op)).or_default()[side] += ns;
        }
    }
    let mut steps: Vec<Step> = rows
        .into_iter()
        .map(|((lane, cause, op), [a_ns, b_ns])| Step {
            lane: lane.to_owned(),
            cause: cause.to_owned(),
            op: op.to_owned(),
            a_ns,
            b_ns,
            delta_ns: delta(a_ns, b_ns),
        })
        .collect();
    steps.sort_by_key(|step| std::cmp::Reverse(step.delta_ns.unsigned_abs()));
    steps
}

/// Matching key: stage, layer, chunk and epoch.
type Key = (Option<u16>, Option<u16>, Option<u64>, u32);

fn ops(a: &Timeline, b: &Timeline) -> Vec<OpDelta> {
    let (a, b) = (durations(a), durations(b));
    let names: std::collections::BTreeSet<_> = a.keys().chain(b.keys()).copied().collect();
    let none = HashMap::new();
    let mut ops: Vec<OpDelta> = names
        .into_iter()
        .map(|(lane, name)| {
            let (a, b) =
                (a.get(&(lane, name)).unwrap_or(&none), b.get(&(lane, name)).unwrap_or(&none));
            let mut op = OpDelta {
                lane: lane.to_owned(),
                name: name.to_owned(),
                matched: 0,
                only_a: a.values().map(Vec::len).sum(),
                only_b: b.values().map(Vec::len).sum(),
                a_ns: 0,
                b_ns: 0,
                delta_ns: 0,
            };
            for (key, of_a) in a {
                for (x, y) in of_a.iter().zip(b.get(key).into_iter().flatten()) {
                    op.matched += 1;
                    (op.a_ns, op.b_ns) = (op.a_ns.saturating_add(*x), op.b_ns.saturating_add(*y));
                }
            }
            op.only_a -= op.matched;
            op.only_b -= op.matched;
            op.delta_ns = delta(op.a_ns, op.b_ns);
            op
        })
        .collect();
    ops.sort_by_key(|op| std::cmp::Reverse(op.delta_ns.unsigned_abs()));
    ops
}

/// Durations by lane and name, then by matching key, in the order of their start.
fn durations(timeline: &Timeline) -> BTreeMap<(&str, &str), HashMap<Key, Vec<u64>>> {
    let mut all: BTreeMap<(&str, &str), HashMap<Key, Vec<u64>>> = BTreeMap::new();
    for span in &timeline.spans {
        let op = (timeline.lanes[span.lane].name.as_str(), span.name.as_str());
        let key = (span.tags.stage, span.tags.layer, span.tags.chunk, span.tags.epoch);
        all.entry(op).or_default().entry(key).or_default().push(span.duration());
    }
    all
}
