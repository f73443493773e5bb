//! Thousands of lanes, such as one for each short-lived thread, stay distinct, and the report does
//! not grow with the square of their number.

use lapwing_traces::event::{Activity, Event, EventKind, LaneId, LaneKind, NameId, SpanInfo, Tags};
use lapwing_traces::recording::{LaneInfo, Recording};
use lapwing_traces::{Analysis, Nanos, Report, Timeline};

use crate::runs::span_id;

/// Spans as (lane, start, end) in ns; the first `named` lanes have names.
fn recording(named: u32, spans: impl IntoIterator<Item = (u32, u64, u64)>) -> Recording {
    let lane = |n| LaneInfo { name: format!("device {n}"), kind: LaneKind::Device };
    let event = |(id, (lane, start, end)): (u64, (u32, u64, u64))| {
        let activity = Activity::Compute;
        let info = SpanInfo { name: NameId(0), activity, parent: None, tags: Tags::default() };
        let kind = EventKind::Ran(span_id(id), info, Nanos(start));
        Event { at: Nanos(end), lane: LaneId(lane), kind }
    };
    Recording {
        lanes: (0..named).map(lane).collect(),
        names: vec!["op".to_owned()],
        events: (1..).zip(spans).map(event).collect(),
        ..Recording::default()
    }
}

fn reported(recording: &Recording) -> (Timeline, Analysis, Report) {
    let timeline = Timeline::new(recording);
    let analysis = Analysis::new(&timeline);
    let report = Report::new(&timeline, &analysis);
    (timeline, analysis, report)
}

#[test]
fn only_the_busiest_lanes_are_paired() {
    const LANES: u32 = 4096;
    for named in [LANES, 0] {
        // All start at the same time; later lanes run longer.
        let spans = (0..3).flat_map(|turn| {
            (0..LANES).map(move |n| (n, turn * 10_000, turn * 10_000 + 1000 + u64::from(n)))
        });
        let (_, analysis, report) = reported(&recording(named, spans));
        assert_eq!(analysis.overlap.lanes.len(), LANES as usize, "all lanes count for the overlap");
        assert_eq!(report.overlap_pairs.len(), 64 * 63 / 2);
        assert!(analysis.overlap.pairs.iter().all(|(i, j, _)| i < j && *i >= 4096 - 64));
        // The last two lanes ran while the last but one did.
        assert_eq!(analysis.overlap.pairs.last(), Some(&(4094, 4095, 3 * (1000 + 4094))));
        assert_eq!(report.lanes.len(), LANES as usize);
        for (n, lane) in (0..).zip(&report.lanes) {
            assert_eq!((lane.spans, lane.busy_ns), (3, 3 * (1000 + n)), "{}", lane.name);
            assert_eq!(lane.busy_ns + lane.idle_ns, report.makespan_ns);
            let idle: u64 = lane.idle.iter().map(|row| row.ns).sum();
            assert_eq!(idle, lane.idle_ns, "the causes of a lane add up to its idle time");
        }
        assert!(serde_json::to_vec(&report).unwrap().len() < 4 << 20);
    }
}

#[test]
fn pairs_that_ran_together_are_reported_however_many_lanes_there_are() {
    // Lane n runs from 10 n to 10 n + 10; the first two run longer, the last one shorter.
    let spans = |lanes: u32| {
        (0..lanes).map(move |n| {
            let length = [15, 15].get(n as usize).copied().unwrap_or(10 - u64::from(n == 64) * 9);
            (n, u64::from(n) * 10, u64::from(n) * 10 + length)
        })
    };
    let (_, few, _) = reported(&recording(64, spans(64)));
    assert_eq!(few.overlap.pairs.len(), 64 * 63 / 2, "with few lanes, all pairs");
    let of_some = few.overlap.pairs.iter().filter(|(_, _, both)| *both > 0);
    let of_some: Vec<_> = of_some.copied().collect();
    assert_eq!(of_some, [(0, 1, 5), (1, 2, 5)]);
    let (_, many, _) = reported(&recording(65, spans(65)));
    assert_eq!(many.overlap.pairs, of_some, "with many, the pairs that ran together");
    assert_eq!((many.overlap.lanes.len(), many.overlap.union), (65, 641));
}

#[test]
fn lanes_without_a_name_stay_distinct() {
    // Only one lane has a name; numbers of the others are small enough to coincide with indices of
    // lanes added before.
    let numbers = [9, 2, 3, 1, 2, 0, 4_000_000_000, 9];
    let spans = (0..).zip(numbers).map(|(at, n)| (n, at * 10, at * 10 + 5));
    let (timeline, _, report) = reported(&recording(1, spans));
    let lanes: Vec<(&str, usize)> =
        report.lanes.iter().map(|lane| (lane.name.as_str(), lane.spans)).collect();
    let in_the_order_in_which_they_came = [
        ("device 0", 1),
        ("lane 9", 2),
        ("lane 2", 2),
        ("lane 3", 1),
        ("lane 1", 1),
        ("lane 4000000000", 1),
    ];
    assert_eq!(lanes, in_the_order_in_which_they_came);
    for (span, n) in timeline.spans.iter().zip(numbers) {
        let name = if n == 0 { "device 0".to_owned() } else { format!("lane {n}") };
        assert_eq!(timeline.lanes[span.lane].name, name);
    }
}
