//! Exports show the run as it was: every span once and exact to the nanosecond, slices that nest,
//! names that do no harm.

use std::collections::{BTreeMap, BTreeSet};

use lapwing_traces::event::{StallCause, Tags};
use lapwing_traces::{Analysis, Timeline, export};
use proptest::prelude::*;

use crate::any_recording;
use crate::protobuf::{Packet, packets};
use crate::runs::{Script, Work, work};

/// Runs with any overlaps, also of inner spans, and with messages between any spans.
fn tangles() -> impl Strategy<Value = Script> {
    let span = (0..3_usize, 0..60_u64, 0..40_u64, prop::option::of(1..30_u64));
    let message = (0..30_u64, 0..30_u64, 0..100_u64, 0..20_u64, any::<bool>());
    let spans = prop::collection::vec(span, 1..30);
    (spans, prop::collection::vec(message, 0..20)).prop_map(|(spans, messages)| {
        let lanes = ["cpu", "gpu", "npu"];
        let mut script = Script::default();
        for (at, (lane, start, length, parent)) in spans.iter().enumerate() {
            let name = format!("op {}", at % 4);
            let time = (*start, start + length);
            let tags = Tags { layer: Some(at as u16), bytes: at as u64, ..Tags::default() };
            let id = at as u64 + 1;
            script.work(Work { parent: *parent, tags, ..work(id, lanes[*lane], &name, time) });
        }
        for (from, to, sent, way, stalled) in messages {
            let stall = stalled.then(|| (StallCause::SlotPool, sent.saturating_sub(3)));
            let to = to.max(1);
            script.stalled((from, to), ("cpu", "gpu"), (sent, sent + way), stall);
        }
        script
    })
}

/// Perfetto's readers use signed times.
fn clamped(at: u64) -> u64 {
    at.min(i64::MAX as u64)
}

/// Slices of a trace as (span id, start, end). Checks that time never goes back, that every end has
/// a start, and that no flow ends before it starts.
fn slices(trace: &[Packet]) -> Vec<(Option<u64>, u64, u64)> {
    let mut open: BTreeMap<u64, Vec<(Option<u64>, u64)>> = BTreeMap::new();
    let mut found = Vec::new();
    let mut last = 0;
    let mut started = BTreeSet::new();
    for packet in trace {
        let Packet::Event { at, track, kind, id, flows, ends_flows } = packet else { continue };
        assert!(*at >= last, "time goes back from {last} to {at}");
        last = *at;
        started.extend(flows);
        assert!(ends_flows.is_subset(&started), "{ends_flows:?} end before they start");
        match kind {
            1 => open.entry(*track).or_default().push((*id, *at)),
            2 => {
                let stack = open.get_mut(track).expect("a beginning");
                let (id, start) = stack.pop().expect("a beginning");
                found.push((id, start, *at));
            }
            _ => {}
        }
    }
    assert!(open.values().all(Vec::is_empty), "slices without an end: {open:?}");
    found
}

fn check_perfetto(timeline: &Timeline, analysis: &Analysis) {
    let trace = packets(&export::perfetto(timeline, analysis));
    let mut known = BTreeSet::from([0]);
    for packet in &trace {
        if let Packet::Track { uuid, parent } = packet {
            assert!(known.contains(parent), "track {uuid} comes before its parent {parent}");
            assert!(known.insert(*uuid), "two tracks have the number {uuid}");
        }
    }
    let slices = slices(&trace);
    let mut spans: Vec<_> =
        slices.iter().filter_map(|(id, start, end)| Some((((*id)?), *start, *end))).collect();
    spans.sort_unstable();
    let mut expected: Vec<_> = timeline
        .spans
        .iter()
        .map(|span| (span.id.0.get(), clamped(span.start.0), clamped(span.end.0)))
        .collect();
    expected.sort_unstable();
    assert_eq!(spans, expected);
    let others = slices.len() - spans.len();
    let path = analysis.critical_path.segments.len();
    assert_eq!(others, timeline.messages.len() + analysis.gaps.len() + path);
    let counted = trace.iter().filter(|packet| matches!(packet, Packet::Event { kind: 4, .. }));
    let values: usize = timeline.counters.iter().map(|counter| counter.values.len()).sum();
    assert_eq!(counted.count(), values);
    for packet in &trace {
        if let Packet::Event { track, .. } = packet {
            assert!(known.contains(track), "nothing describes track {track}");
        }
    }
}

/// A time in microseconds in a line of JSON, in ns.
fn nanos(line: &str, key: &str) -> u64 {
    let number = line.split(&format!("\"{key}\":")).nth(1).expect("a time");
    let number = number.split([',', '}']).next().expect("its end");
    let (micros, nanos) = number.split_once('.').expect("decimals");
    assert_eq!(nanos.len(), 3, "{line}");
    let (micros, nanos): (u128, u128) = (micros.parse().unwrap(), nanos.parse().unwrap());
    u64::try_from(micros * 1000 + nanos).unwrap()
}

fn check_chrome(timeline: &Timeline, analysis: &Analysis) {
    let text = export::chrome(timeline, analysis);
    let trace: serde_json::Value = serde_json::from_str(&text).expect("valid JSON");
    let events = trace["traceEvents"].as_array().expect("events");
    // One event per line, in the same order.
    let lines: Vec<&str> = text.lines().skip(1).take(events.len()).collect();
    let mut spans = Vec::new();
    let mut threads: BTreeMap<u64, Vec<(u64, u64)>> = BTreeMap::new();
    for (event, line) in events.iter().zip(lines) {
        if event["ph"] == "X" {
            let (start, length) = (nanos(line, "ts"), nanos(line, "dur"));
            threads.entry(event["tid"].as_u64().unwrap()).or_default().push((start, length));
            if let Some(id) = event["args"]["id"].as_u64() {
                spans.push((id, event["name"].as_str().unwrap(), start, length));
            }
        }
    }
    spans.sort_unstable();
    let spans_of = timeline.spans.iter();
    let mut expected: Vec<_> = spans_of
        .map(|span| (span.id.0.get(), span.name.as_str(), span.start.0, span.duration()))
        .collect();
    expected.sort_unstable();
    assert_eq!(spans, expected);
    for slices in threads.values_mut() {
        slices.sort_unstable_by_key(|(start, length)| (*start, std::cmp::Reverse(*length)));
        let mut open: Vec<u64> = Vec::new();
        for (start, length) in slices {
            open.retain(|end| *end > *start || (*end == *start && *length == 0));
            let end = *start + *length;
            assert!(open.iter().all(|outer| *outer >= end), "a slice sticks out of another");
            open.push(end);
        }
    }
    for (phase, count) in [("b", timeline.messages.len()), ("e", timeline.messages.len())] {
        assert_eq!(events.iter().filter(|event| event["ph"] == phase).count(), count);
    }
}

/// Rows of a table in the format of RFC 4180.
fn rows(text: &str) -> Vec<Vec<String>> {
    let (mut rows, mut row, mut cell) = (Vec::new(), Vec::new(), String::new());
    let mut chars = text.chars().peekable();
    let mut quoted = false;
    while let Some(c) = chars.next() {
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => cell.extend(chars.next()),
            '"' => quoted = !quoted,
            ',' if !quoted => row.push(std::mem::take(&mut cell)),
            '\r' if !quoted => {
                assert_eq!(chars.next(), Some('\n'));
                row.push(std::mem::take(&mut cell));
                rows.push(std::mem::take(&mut row));
            }
            c => cell.push(c),
        }
    }
    assert!(row.is_empty() && cell.is_empty(), "the last row does not end");
    rows
}

/// The text that a cell represents.
fn restored(cell: &str) -> &str {
    cell.strip_prefix('\'').unwrap_or(cell)
}

fn check_csv(timeline: &Timeline, analysis: &Analysis) {
    let tables = export::csv(timeline, analysis);
    let count = |file: &str| {
        let table = tables.iter().find(|table| table.file == file).expect(file);
        let rows = rows(&table.text);
        assert!(rows.iter().all(|row| row.len() == rows[0].len()), "{file} is ragged");
        for cell in rows.iter().flatten() {
            let formula = cell.starts_with(['=', '+', '-', '@', '\t', '\r']);
            assert!(!formula || cell.parse::<i64>().is_ok(), "{cell:?} is a formula");
        }
        rows.len() - 1
    };
    assert_eq!(count("spans.csv"), timeline.spans.len());
    assert_eq!(count("gaps.csv"), analysis.gaps.len());
    assert_eq!(count("critical_path.csv"), analysis.critical_path.segments.len());
    assert_eq!(count("messages.csv"), timeline.messages.len());
    assert_eq!(count("waits.csv"), timeline.waits.len());
    assert_eq!(count("requests.csv"), timeline.milestones.len());
    assert_eq!(count("limited.csv"), timeline.limited.len());
    assert_eq!(count("routed.csv"), timeline.routed.len());
    let values: usize = timeline.counters.iter().map(|counter| counter.values.len()).sum();
    assert_eq!(count("counters.csv"), values);
    let spans = rows(&tables[0].text);
    let column = |name: &str| spans[0].iter().position(|title| title == name).expect(name);
    let [name, start, end] = ["name", "start_ns", "end_ns"].map(column);
    for (span, row) in timeline.spans.iter().zip(&spans[1..]) {
        let written = (restored(&row[name]), row[start].as_str(), row[end].as_str());
        let times = (span.start.0.to_string(), span.end.0.to_string());
        assert_eq!(written, (span.name.as_str(), times.0.as_str(), times.1.as_str()));
    }
}

proptest! {
    #[test]
    fn every_span_is_exported_once(script in tangles()) {
        let (timeline, analysis) = script.analysed();
        check_perfetto(&timeline, &analysis);
        check_chrome(&timeline, &analysis);
        check_csv(&timeline, &analysis);
    }

    #[test]
    fn any_recording_can_be_exported(recording in any_recording::recording()) {
        let timeline = Timeline::new(&recording);
        let analysis = Analysis::new(&timeline);
        check_perfetto(&timeline, &analysis);
        check_chrome(&timeline, &analysis);
        check_csv(&timeline, &analysis);
    }
}

#[test]
fn a_name_stays_one_cell_and_is_not_a_formula() {
    let mut script = Script::default();
    let names = ["=1+1", "+1", "-1", "@x", "\tx", "\rx", "'x", "a,b", "a\"b\r\nc", "", "plain"];
    for (at, name) in names.iter().enumerate() {
        let at = at as u64;
        script.work(work(at + 1, "=lane", name, (at, at + 1)));
    }
    let (timeline, analysis) = script.analysed();
    let table = export::csv(&timeline, &analysis).remove(0);
    let rows = rows(&table.text);
    let lane_and_name: Vec<_> = rows[1..].iter().map(|row| (&*row[3], &*row[5])).collect();
    let safe =
        ["'=1+1", "'+1", "'-1", "'@x", "'\tx", "'\rx", "''x", "a,b", "a\"b\r\nc", "", "plain"];
    assert_eq!(lane_and_name, safe.map(|name| ("'=lane", name)));
    check_csv(&timeline, &analysis);
    check_chrome(&timeline, &analysis);
}

#[test]
fn simultaneous_flows_start_before_they_end() {
    let mut script = Script::default();
    // The receiver's lane has the lower number, and everything happens in the same nanosecond.
    script.ran(1, "a", (5, 9)).ran(2, "b", (5, 5)).ran(3, "c", (5, 6));
    script.sent((2, 1), ("b", "a"), (5, 5)).sent((3, 2), ("c", "b"), (5, 5));
    let (timeline, analysis) = script.analysed();
    check_perfetto(&timeline, &analysis);
    // A cycle has no correct order, but every slice must be there.
    script.sent((1, 3), ("a", "c"), (5, 5));
    let (timeline, analysis) = script.analysed();
    let trace = packets(&export::perfetto(&timeline, &analysis));
    let begins = trace.iter().filter(|packet| matches!(packet, Packet::Event { kind: 1, .. }));
    let path = analysis.critical_path.segments.len();
    assert_eq!(begins.count(), 3 + 3 + analysis.gaps.len() + path);
}
