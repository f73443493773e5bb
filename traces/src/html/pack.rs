//! Packs a run for the page: a JSON header (lanes, names, dictionaries) and columns of numbers.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::Serialize;

use super::columns::{Column, Columns, PLAIN_MAX, SIGNED_MAX, zigzag};
use super::error::HtmlError;
use super::run::PageRun;
use crate::analysis::{IdleCause, SegmentKind};
use crate::clock::Nanos;
use crate::event::{Activity, DraftRole, Milestone, StallCause, WaitMode};
use crate::timeline::Span;

mod streams;

/// JSON header before the columns.
#[derive(Serialize)]
struct Header<'a> {
    title: &'a str,
    meta: &'a BTreeMap<String, String>,
    start: String,
    makespan: u64,
    dropped: u64,
    orphans: u64,
    lanes: Vec<LaneHead<'a>>,
    names: Vec<&'a str>,
    /// Chunk numbers by dictionary index. They are strings because a number may exceed the exact
    /// range of a float.
    chunks: Vec<String>,
    requests: Vec<String>,
    streams: Vec<String>,
    counters: Vec<CounterHead<'a>>,
    activities: Vec<&'static str>,
    roles: Vec<&'static str>,
    causes: Vec<&'static str>,
    modes: Vec<&'static str>,
    stalls: Vec<&'static str>,
    milestones: Vec<&'static str>,
    columns: &'a [Column],
}

#[derive(Serialize)]
struct LaneHead<'a> {
    name: &'a str,
    kind: &'static str,
}

#[derive(Serialize)]
struct CounterHead<'a> {
    name: &'a str,
    lane: usize,
}

/// Dictionary indices of names and large numbers.
struct Dictionaries<'a> {
    base: Nanos,
    names: HashMap<&'a str, u64>,
    chunks: HashMap<u64, i64>,
    requests: HashMap<u64, i64>,
}

/// Packs a run: header and columns, deflated.
pub(super) fn pack(run: &PageRun<'_>) -> Result<Vec<u8>, HtmlError> {
    let timeline = run.timeline;
    let names: BTreeSet<&str> = timeline
        .spans
        .iter()
        .map(|span| span.name.as_str())
        .chain(timeline.messages.iter().map(|message| message.name.as_str()))
        .chain(timeline.waits.iter().map(|wait| wait.name.as_str()))
        .collect();
    let chunks: BTreeSet<u64> = timeline.spans.iter().filter_map(|s| s.tags.chunk).collect();
    let mut requests: BTreeSet<u64> =
        timeline.spans.iter().filter_map(|span| span.tags.request).collect();
    requests.extend(timeline.milestones.iter().map(|milestone| milestone.request));
    let dictionaries = Dictionaries {
        base: timeline.extent().0,
        names: names.iter().enumerate().map(|(at, name)| (*name, at as u64)).collect(),
        chunks: dictionary(&chunks),
        requests: dictionary(&requests),
    };
    let mut columns = Columns::default();
    spans(&mut columns, run, &dictionaries);
    gaps(&mut columns, run, &dictionaries);
    messages(&mut columns, run, &dictionaries);
    waits(&mut columns, run, &dictionaries);
    rest(&mut columns, run, &dictionaries);
    let streams = streams::streams(&mut columns, timeline, &chunks);
    streams::targets(&mut columns, timeline, &requests);
    let header = Header {
        title: run.title,
        meta: &timeline.meta,
        start: dictionaries.base.0.to_string(),
        makespan: timeline.makespan().min(PLAIN_MAX),
        dropped: timeline.dropped.min(PLAIN_MAX),
        orphans: timeline.orphans.min(PLAIN_MAX),
        lanes: timeline
            .lanes
            .iter()
            .map(|lane| LaneHead { name: &lane.name, kind: lane.kind.name() })
            .collect(),
        names: names.into_iter().collect(),
        chunks: chunks.iter().map(u64::to_string).collect(),
        requests: requests.iter().map(u64::to_string).collect(),
        streams,
        counters: timeline
            .counters
            .iter()
            .map(|counter| CounterHead { name: &counter.name, lane: counter.lane })
            .collect(),
        activities: Activity::ALL.iter().map(|activity| activity.name()).collect(),
        roles: DraftRole::ALL.iter().map(|role| role.name()).collect(),
        causes: IdleCause::ALL.iter().map(|cause| cause.name()).collect(),
        modes: WaitMode::ALL.iter().map(|mode| mode.name()).collect(),
        stalls: StallCause::ALL.iter().map(|cause| cause.name()).collect(),
        milestones: Milestone::ALL.iter().map(|milestone| milestone.name()).collect(),
        columns: &columns.index,
    };
    let header = serde_json::to_vec(&header).map_err(HtmlError::Header)?;
    columns.deflate(&header).map_err(HtmlError::Compress)
}

fn dictionary(values: &BTreeSet<u64>) -> HashMap<u64, i64> {
    values.iter().enumerate().map(|(at, value)| (*value, at as i64)).collect()
}

impl Dictionaries<'_> {
    /// Nanoseconds since the start of the run.
    fn time(&self, at: Nanos) -> i64 {
        self.nanos(at.0)
    }

    fn nanos(&self, at: u64) -> i64 {
        let signed = i128::from(at) - i128::from(self.base.0);
        signed.clamp(i128::from(-SIGNED_MAX), i128::from(SIGNED_MAX)) as i64
    }

    fn name(&self, name: &str) -> u64 {
        self.names.get(name).copied().unwrap_or(0)
    }
}

/// Index plus one; 0 for none.
fn option(index: Option<usize>) -> u64 {
    index.map_or(0, |index| index as u64 + 1)
}

/// Index as a signed number, −1 for none. Neighbouring values are close to each other.
fn link(index: Option<usize>) -> i64 {
    index.map_or(-1, |index| index as i64)
}

/// Zigzagged time before `at`, plus one; 0 for none.
fn before(at: Nanos, earlier: Option<Nanos>) -> u64 {
    earlier.map_or(0, |earlier| {
        let signed = i128::from(at.0) - i128::from(earlier.0);
        let limit = i128::from(SIGNED_MAX);
        zigzag(signed.clamp(-limit, limit) as i64) + 1
    })
}

/// Index of a cause in `IdleCause::ALL`, and for a dependency the lane plus one (otherwise 0).
fn cause(cause: IdleCause) -> (u64, u64) {
    let place = IdleCause::ALL.iter().position(|known| known.name() == cause.name());
    let lane = if let IdleCause::Dependency(lane) = cause { Some(lane) } else { None };
    (place.unwrap_or(IdleCause::ALL.len() - 1) as u64, option(lane))
}

fn spans(columns: &mut Columns, run: &PageRun<'_>, dictionaries: &Dictionaries<'_>) {
    let spans = &run.timeline.spans;
    let mut critical = vec![false; spans.len()];
    for span in &run.analysis.critical_path.spans {
        critical[*span] = true;
    }
    let all = || spans.iter();
    let chunk = |value: Option<u64>| value.and_then(|v| dictionaries.chunks.get(&v)).copied();
    let request = |value: Option<u64>| value.and_then(|v| dictionaries.requests.get(&v)).copied();
    columns.plain("span.lane", all().map(|s| s.lane as u64));
    columns.plain("span.slot", all().map(|s| s.slot as u64));
    columns.plain(
        "span.parent",
        all().enumerate().map(|(at, s)| s.parent.map_or(0, |parent| (at - parent) as u64)),
    );
    columns.plain("span.name", all().map(|s| dictionaries.name(&s.name)));
    columns.plain("span.activity", all().map(|s| u64::from(s.activity.code())));
    columns.delta("span.start", all().map(|s| dictionaries.time(s.start)));
    columns.plain("span.duration", all().map(|s| s.duration()));
    columns.plain("span.queued", all().map(|s| before(s.start, s.queued)));
    columns.plain("span.submitted", all().map(|s| before(s.start, s.submitted)));
    columns.delta("span.chunk", all().map(|s| chunk(s.tags.chunk).unwrap_or(-1)));
    columns.delta("span.request", all().map(|s| request(s.tags.request).unwrap_or(-1)));
    columns.plain("span.stage", all().map(|s| s.tags.stage.map_or(0, |v| u64::from(v) + 1)));
    columns.plain("span.layer", all().map(|s| s.tags.layer.map_or(0, |v| u64::from(v) + 1)));
    columns.plain("span.role", all().map(|s| s.tags.role.map_or(0, |role| role.code().into())));
    let outcome = |s: &Span| run.timeline.outcomes.get(&s.tags.chunk?).copied();
    let outcomes = || all().map(|s| outcome(s).unwrap_or_default());
    columns.plain("span.drafted", outcomes().map(|rows| rows.drafted.into()));
    columns.plain("span.accepted", outcomes().map(|rows| rows.accepted.into()));
    columns.plain("span.wasted", outcomes().map(|rows| rows.wasted.into()));
    columns.plain("span.rows", all().map(|s| u64::from(s.tags.rows)));
    columns.plain("span.epoch", all().map(|s| u64::from(s.tags.epoch)));
    columns.plain("span.bytes", all().map(|s| s.tags.bytes));
    columns.plain("span.flops", all().map(|s| s.tags.flops));
    columns.plain("span.slack", run.analysis.critical_path.slack.iter().copied());
    columns.plain(
        "span.flags",
        all().zip(critical).map(|(s, critical)| {
            u64::from(s.finished) | u64::from(critical) << 1 | u64::from(s.discarded) << 2
        }),
    );
}

fn gaps(columns: &mut Columns, run: &PageRun<'_>, dictionaries: &Dictionaries<'_>) {
    let gaps = &run.analysis.gaps;
    columns.plain("gap.lane", gaps.iter().map(|g| g.lane as u64));
    columns.delta("gap.start", gaps.iter().map(|g| dictionaries.nanos(g.start)));
    columns.plain("gap.duration", gaps.iter().map(|g| g.end.saturating_sub(g.start)));
    columns.plain("gap.cause", gaps.iter().map(|g| cause(g.cause).0));
    columns.plain("gap.on", gaps.iter().map(|g| cause(g.cause).1));
    columns.delta("gap.next", gaps.iter().map(|g| link(g.next)));
    columns.delta("gap.blocker", gaps.iter().map(|g| link(g.blocker)));
    let segments = &run.analysis.critical_path.segments;
    let part = |kind: SegmentKind| match kind {
        SegmentKind::Running(span) => (0, 0, span),
        SegmentKind::Waiting(why, span) => (cause(why).0 + 1, cause(why).1, span),
    };
    columns.plain("segment.lane", segments.iter().map(|s| s.lane as u64));
    columns.delta("segment.start", segments.iter().map(|s| dictionaries.nanos(s.start)));
    columns.plain("segment.duration", segments.iter().map(|s| s.end.saturating_sub(s.start)));
    columns.plain("segment.cause", segments.iter().map(|s| part(s.kind).0));
    columns.plain("segment.on", segments.iter().map(|s| part(s.kind).1));
    columns.delta("segment.span", segments.iter().map(|s| part(s.kind).2 as i64));
}

fn messages(columns: &mut Columns, run: &PageRun<'_>, dictionaries: &Dictionaries<'_>) {
    let messages = &run.timeline.messages;
    let all = || messages.iter();
    columns.delta("message.from", all().map(|m| link(m.from)));
    columns.delta("message.to", all().map(|m| link(m.to)));
    columns.plain("message.fromLane", all().map(|m| m.from_lane as u64));
    columns.plain("message.toLane", all().map(|m| option(m.to_lane)));
    columns.plain("message.name", all().map(|m| dictionaries.name(&m.name)));
    columns.delta("message.sent", all().map(|m| dictionaries.time(m.sent)));
    columns.plain(
        "message.delay",
        all().map(|m| m.received.map_or(0, |at| at.0.saturating_sub(m.sent.0).saturating_add(1))),
    );
    columns.plain("message.bytes", all().map(|m| m.bytes));
    columns
        .plain("message.stall", all().map(|m| m.stall.map_or(0, |(cause, _)| cause.code().into())));
    columns.plain(
        "message.stalled",
        all().map(|m| m.stall.map_or(0, |(_, since)| m.sent.0.saturating_sub(since.0))),
    );
}

fn waits(columns: &mut Columns, run: &PageRun<'_>, dictionaries: &Dictionaries<'_>) {
    let all = || run.timeline.waits.iter();
    columns.plain("wait.lane", all().map(|w| w.lane as u64));
    columns.plain("wait.name", all().map(|w| dictionaries.name(&w.name)));
    columns.delta("wait.target", all().map(|w| link(w.target)));
    columns.plain("wait.mode", all().map(|w| u64::from(w.mode.code())));
    columns.delta("wait.start", all().map(|w| dictionaries.time(w.start)));
    columns.plain("wait.duration", all().map(|w| w.end.0.saturating_sub(w.start.0)));
    columns.plain("wait.predicted", all().map(|w| w.predicted));
    columns.plain("wait.margin", all().map(|w| w.margin));
    columns.plain("wait.slept", all().map(|w| w.slept));
    columns.plain("wait.spun", all().map(|w| w.spun));
}

fn rest(columns: &mut Columns, run: &PageRun<'_>, dictionaries: &Dictionaries<'_>) {
    let timeline = run.timeline;
    let sleeps = || timeline.sleeps.iter();
    columns.plain("sleep.lane", sleeps().map(|s| s.lane as u64));
    columns.delta("sleep.start", sleeps().map(|s| dictionaries.time(s.start)));
    columns.plain("sleep.duration", sleeps().map(|s| s.end.0.saturating_sub(s.start.0)));
    for (at, counter) in timeline.counters.iter().enumerate() {
        let values = || counter.values.iter();
        columns
            .delta(&format!("counter.{at}.at"), values().map(|(time, _)| dictionaries.time(*time)));
        columns.delta(&format!("counter.{at}.value"), values().map(|(_, value)| *value));
    }
    let milestones = || timeline.milestones.iter();
    let request = |request: u64| dictionaries.requests.get(&request).copied().unwrap_or(-1);
    columns.delta("milestone.request", milestones().map(|s| request(s.request)));
    columns.plain("milestone.kind", milestones().map(|s| u64::from(s.milestone.code())));
    columns.delta("milestone.at", milestones().map(|s| dictionaries.time(s.at)));
    columns.plain("milestone.value", milestones().map(|s| s.value));
}

#[cfg(test)]
mod tests;
