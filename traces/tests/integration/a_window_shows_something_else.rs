//! A window of a run shows what is outside of it, or hides what is inside.

use lapwing_traces::analysis::SegmentKind;
use lapwing_traces::event::{EventKind, SpanInfo, Tags};
use lapwing_traces::{Analysis, Nanos, Report, Timeline};
use proptest::prelude::*;

use crate::runs::{Script, Slept, programs, schedule, span_id, work};

/// Busy time of each lane between two moments.
fn busy(timeline: &Timeline, from: u64, to: u64) -> Vec<u64> {
    let mut busy = vec![0; timeline.lanes.len()];
    for span in timeline.outer().map(|span| &timeline.spans[span]) {
        let (start, end) = (span.start.0.max(from), span.end.0.min(to));
        busy[span.lane] += end.saturating_sub(start);
    }
    busy
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn a_window_has_exactly_the_part_of_the_run_between_its_borders(
        program in programs(), thread in any::<bool>(), borders in any::<[u16; 2]>()
    ) {
        let recording = schedule(&program, thread).recording;
        let whole = Timeline::new(&recording);
        let end = whole.extent().1.0 + 20;
        let [a, b] = borders.map(|border| u64::from(border) % (end + 1));
        let (from, to) = (a.min(b), a.max(b));
        let window = Timeline::of_window(&recording, Nanos(from), Nanos(to));
        let analysis = Analysis::new(&window);
        let report = Report::new(&window, &analysis);
        prop_assert_eq!(window.extent(), (Nanos(from), Nanos(to)));
        prop_assert_eq!((report.makespan_ns, window.orphans), (to - from, 0));
        prop_assert_eq!(busy(&window, from, to), busy(&whole, from, to));
        for span in &window.spans {
            prop_assert!(from <= span.start.0 && span.start <= span.end && span.end.0 <= to);
            if let Some(parent) = span.parent {
                let parent = &window.spans[parent];
                prop_assert!(parent.start <= span.start && span.end <= parent.end);
            }
        }
        for (index, lane) in report.lanes.iter().enumerate() {
            let used = whole.outer().any(|span| whole.spans[span].lane == index);
            prop_assert_eq!(lane.busy_ns + lane.idle_ns, if used { to - from } else { 0 });
            let gaps = analysis.gaps.iter().filter(|gap| gap.lane == index);
            prop_assert_eq!(gaps.map(|gap| gap.end - gap.start).sum::<u64>(), lane.idle_ns);
        }
        let mut time = from;
        for segment in &analysis.critical_path.segments {
            prop_assert_eq!(segment.start, time);
            time = segment.end;
            if let SegmentKind::Running(span) = segment.kind {
                let span = &window.spans[span];
                prop_assert!(span.start.0 <= segment.start && segment.end <= span.end.0);
            }
        }
        prop_assert!(time == to || window.spans.is_empty());
    }
}

#[test]
fn waits_and_counters_are_cut_at_the_border() {
    let mut script = Script::default();
    script.ran(1, "gpu", (0, 100)).ran(2, "cpu", (120, 150));
    script.waited("cpu", 1, (20, 110), Slept { predicted: 90, margin: 10, slept: 60 });
    let name = script.name("chunks waiting");
    for (at, value) in [(10, 3), (40, 5), (90, 7), (140, 9)] {
        script.event(at, "gpu", EventKind::Counter(name, value));
    }
    let window = Timeline::of_window(&script.recording, Nanos(50), Nanos(130));
    let wait = &window.waits[0];
    assert_eq!((wait.start, wait.end), (Nanos(50), Nanos(110)));
    // 30 of its 60 ns of sleep were before, and the error of the prediction stays 0.
    assert_eq!((wait.predicted, wait.slept, wait.spun), (60, 30, 30));
    assert_eq!(window.counters[0].values, [(Nanos(50), 5), (Nanos(90), 7)]);
    let spans: Vec<_> = window.spans.iter().map(|span| (span.start.0, span.end.0)).collect();
    assert_eq!(spans, [(50, 100), (120, 130)]);
}

#[test]
fn a_span_that_still_runs_lasts_until_the_end_of_the_window() {
    let mut script = Script::default();
    let info = SpanInfo {
        name: script.name("op"),
        activity: work(1, "cpu", "op", (0, 0)).activity,
        parent: None,
        tags: Tags::default(),
    };
    script.event(40, "cpu", EventKind::Started(span_id(1), info));
    let window = Timeline::of_window(&script.recording, Nanos(100), Nanos(200));
    assert_eq!((window.spans[0].start, window.spans[0].end), (Nanos(100), Nanos(200)));
    // The end of something that began before the recording is missing, if the window has it.
    script.event(60, "cpu", EventKind::Finished(span_id(2)));
    assert_eq!(Timeline::of_window(&script.recording, Nanos(100), Nanos(200)).orphans, 0);
    assert_eq!(Timeline::of_window(&script.recording, Nanos(50), Nanos(200)).orphans, 1);
}
