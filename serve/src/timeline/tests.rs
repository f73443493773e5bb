//! The window of a server that has been running for long, under a clock that the test sets.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use lapwing_traces::event::{Activity, EventKind, SpanInfo, Tags};
use lapwing_traces::{Clock, RecorderConfig, Writer};

use super::*;

const SECOND: u64 = 1_000_000_000;

#[derive(Debug, Default)]
struct Hand(AtomicU64);

impl Clock for Hand {
    fn now(&self) -> Nanos {
        Nanos(self.0.load(Ordering::Relaxed))
    }
}

fn info(recorder: &Recorder, name: &str) -> SpanInfo {
    let (name, tags) = (recorder.name(name), Tags::default());
    SpanInfo { name, activity: Activity::Compute, parent: None, tags }
}

/// Records that a lane ran during that time, in ns.
fn ran(writer: &mut Writer, lane: &str, kind: LaneKind, time: Range<u64>) {
    let recorder = writer.recorder().clone();
    let (lane, span, info) = (recorder.lane(lane, kind), writer.span(), info(&recorder, lane));
    writer.record(Nanos(time.end), lane, EventKind::Ran(span, info, Nanos(time.start)));
}

/// What a server with room for 64 events has after 300 seconds: in each, its device ran for 0.4 seconds. The caller
/// waited most of the time.
fn after_five_minutes() -> (Arc<Hand>, Asked, Writer) {
    let clock = Arc::new(Hand::default());
    let config = RecorderConfig {
        ring_events: 16,
        events_max: 64,
        keep_latest: true,
        ..RecorderConfig::default()
    };
    let recorder = Recorder::new(clock.clone(), config);
    let mut writer = recorder.writer();
    for second in 0..300 {
        let start = second * SECOND;
        ran(&mut writer, "cpu", LaneKind::Device, start..start + SECOND * 2 / 5);
        if second == 297 {
            ran(&mut writer, "caller", LaneKind::Thread, 70 * SECOND..start);
        }
        recorder.collect();
    }
    clock.0.store(300 * SECOND, Ordering::Relaxed);
    let asked = Asked { name: "tiny".to_owned(), recorder, time: Duration::from_secs(10) };
    (clock, asked, writer)
}

fn busy(asked: &Asked) -> f64 {
    let lanes = asked.lanes();
    assert_eq!(lanes["lanes"][0]["name"], "cpu");
    lanes["lanes"][0]["busy"].as_f64().expect("a share")
}

#[test]
fn the_window_is_exactly_as_long_as_was_asked_and_misses_nothing() {
    let (clock, asked, mut writer) = after_five_minutes();
    let (timeline, since, now) = asked.timeline();
    assert_eq!((since, now), (Nanos(290 * SECOND), Nanos(300 * SECOND)));
    assert_eq!((timeline.makespan(), timeline.dropped, timeline.orphans), (10 * SECOND, 0, 0));
    assert!(timeline.spans.iter().all(|span| since <= span.start && span.end <= now));
    let caller = timeline.spans.iter().find(|span| span.name == "caller").expect("the caller");
    assert_eq!(caller.duration(), 7 * SECOND, "cut at the start of the window");
    assert!((busy(&asked) - 0.4).abs() < 1e-6);
    // The server is idle, then a span has begun and not ended.
    clock.0.store(306 * SECOND, Ordering::Relaxed);
    assert!((busy(&asked) - 0.16).abs() < 1e-6);
    let cpu = asked.recorder.lane("cpu", LaneKind::Device);
    let (span, info) = (writer.span(), info(&asked.recorder, "cpu"));
    writer.record(Nanos(304 * SECOND), cpu, EventKind::Started(span, info));
    assert!((busy(&asked) - 0.36).abs() < 1e-6, "it runs until now");
    clock.0.store(320 * SECOND, Ordering::Relaxed);
    assert!((busy(&asked) - 1.0).abs() < 1e-6);
    writer.record(Nanos(321 * SECOND), cpu, EventKind::Finished(span));
    clock.0.store(400 * SECOND, Ordering::Relaxed);
    let (timeline, ..) = asked.timeline();
    let report = Report::new(&timeline, &Analysis::new(&timeline));
    let lane = report.lanes.iter().find(|lane| lane.name == "cpu").expect("the device");
    assert_eq!((report.makespan_ns, lane.busy_ns, lane.idle_ns), (10 * SECOND, 0, 10 * SECOND));
    assert!(asked.page().expect("a page").contains("No spans were recorded."));
}

#[test]
fn events_are_said_to_be_missing_only_where_they_are() {
    let (_, asked, _) = after_five_minutes();
    let warning = "events were dropped";
    assert!(!asked.page().expect("a page").contains(warning));
    // The latest 64 events reach back about 64 seconds.
    let asked = Asked { time: Duration::from_secs(100), ..asked };
    let (timeline, ..) = asked.timeline();
    assert_eq!(timeline.makespan(), 100 * SECOND);
    assert!(timeline.dropped > 0);
    assert!(asked.page().expect("a page").contains(warning));
}
