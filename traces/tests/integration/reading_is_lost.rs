//! Waiting for data from a disk is a cause of its own, and its time and bytes are in every report.

use lapwing_traces::event::{Activity, Tags};
use lapwing_traces::html::{PageRun, page};
use lapwing_traces::recording::Recording;
use lapwing_traces::text::{self, TextOptions};
use lapwing_traces::{Nanos, Report, Timeline};

use crate::known_answers::expect;
use crate::runs::{Script, Work, span_id, work};

/// Two decode steps on a CPU, the first of which reads twice, and a step of a GPU that needs the second one.
fn script() -> Script {
    let mut script = Script::default();
    let step = |id, time| Work { name: "decode", ..work(id, "cpu", "decode", time) };
    script.work(step(1, (0, 100))).work(step(2, (100, 150)));
    for (id, time, bytes) in [(3, (10, 30), 4096), (4, (50, 90), 0)] {
        let tags = Tags { bytes, ..Tags::default() };
        let (name, activity, parent) = ("read weights", Activity::Read, Some(1));
        script.work(Work { name, activity, parent, tags, ..work(id, "cpu", name, time) });
    }
    script.ran(5, "gpu", (150, 160)).sent((2, 5), ("cpu", "gpu"), (150, 150));
    script
}

#[test]
fn a_lane_that_waits_for_a_reading_one_says_so() {
    let reading = [
        (0, 10, "dependency on cpu"),
        (10, 30, "reading"),
        (30, 50, "dependency on cpu"),
        (50, 90, "reading"),
        (90, 100, "dependency on cpu"),
        (100, 150, "dependency on cpu"),
    ];
    expect(&script(), "gpu", &reading);
    let mut alone = Script::default();
    alone.work(Work { activity: Activity::Read, ..work(1, "disk", "load", (0, 40)) });
    alone.ran(2, "cpu", (40, 50)).sent((1, 2), ("disk", "cpu"), (40, 40));
    expect(&alone, "cpu", &[(0, 40, "reading")]);
}

#[test]
fn the_share_of_reading_in_each_kind_of_step_is_reported_with_its_bytes() {
    let (timeline, analysis) = script().analysed();
    let report = Report::new(&timeline, &analysis);
    let [reads] = &report.reads[..] else { panic!("{:?}", report.reads) };
    assert_eq!((&*reads.lane, &*reads.step), ("cpu", "decode"));
    assert_eq!((reads.steps, reads.reading), (2, 1));
    assert_eq!((reads.busy_ns, reads.read_ns, reads.bytes), (150, 60, 4096));
    assert_eq!((reads.share, reads.gb_per_s), (0.4, Some(4096.0 / 60.0)));
    let text = text::text(&timeline, &analysis, &report, &TextOptions::default());
    let row = text.lines().skip_while(|line| !line.contains("Waiting for data from the disk"));
    let row = row.skip(1).find(|line| line.contains("decode")).expect("a row");
    for part in ["60 ns", "40.0 %", "4.1 kB"] {
        assert!(row.contains(part), "{row}");
    }
    let run = PageRun { title: "run", timeline: &timeline, analysis: &analysis, report: &report };
    let page = page(&[run]).expect("a page");
    assert!(page.contains("Waiting for data from the disk"));
    let json = serde_json::to_value(&report).expect("numbers");
    assert_eq!(json["reads"][0]["bytes"], 4096);
    let without = Script::default().analysed();
    assert!(Report::new(&without.0, &without.1).reads.is_empty());
}

#[test]
fn reading_survives_a_file() {
    let recording = script().recording;
    let again = Recording::from_bytes(&recording.to_bytes()).expect("a recording");
    let timeline = Timeline::new(&again);
    assert_eq!(timeline, Timeline::new(&recording));
    let span = timeline.spans.iter().find(|span| span.id == span_id(3)).expect("a span");
    assert_eq!((span.activity, span.start, span.tags.bytes), (Activity::Read, Nanos(10), 4096));
}
