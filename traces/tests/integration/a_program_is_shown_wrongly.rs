//! Spans and events of a program that uses `tracing` appear on the timeline as they happened.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread;

use lapwing_traces::event::{Activity, LaneKind, Tags};
use lapwing_traces::layer::TimelineLayer;
use lapwing_traces::timeline::Span;
use lapwing_traces::{OsClock, Recorder, RecorderConfig, Scope, Timeline};
use tracing::{Dispatch, info, info_span};
use tracing_subscriber::layer::SubscriberExt;

pub(crate) fn recorder(scope: Scope) -> Recorder {
    let recorder = Recorder::new(Arc::new(OsClock::start()), RecorderConfig::default());
    recorder.set_scope(scope);
    recorder
}

pub(crate) fn subscriber(recorder: &Recorder) -> Dispatch {
    Dispatch::new(tracing_subscriber::registry().with(TimelineLayer::new(recorder.clone())))
}

pub(crate) fn run(scope: Scope, program: impl FnOnce(&Recorder)) -> Timeline {
    let recorder = recorder(scope);
    tracing::dispatcher::with_default(&subscriber(&recorder), || program(&recorder));
    let recording = recorder.recording();
    assert_eq!(recording.dropped, 0);
    Timeline::new(&recording)
}

pub(crate) fn span<'a>(timeline: &'a Timeline, name: &str) -> &'a Span {
    let mut named = timeline.spans.iter().filter(|span| span.name == name);
    let first = named.next().unwrap_or_else(|| panic!("no {name} in {:?}", timeline.spans));
    assert!(named.next().is_none(), "one {name}");
    first
}

pub(crate) fn names(timeline: &Timeline) -> Vec<&str> {
    timeline.spans.iter().map(|span| span.name.as_str()).collect()
}

pub(crate) fn lane<'a>(timeline: &'a Timeline, span: &Span) -> (&'a str, LaneKind) {
    let lane = &timeline.lanes[span.lane];
    (&lane.name, lane.kind)
}

#[test]
fn spans_have_the_parents_tags_and_lanes_of_the_program() {
    let timeline = run(Scope::All, |_| {
        let tags = info_span!(
            "tagged",
            chunk = 3,
            request = 4u64,
            stage = 1,
            layer = 70_000,
            rows = 2,
            epoch = 5,
            bytes = 1u64 << 40,
            flops = -1,
            activity = "copy",
            other = "ignored",
            late = tracing::field::Empty,
        );
        info_span!("outer").in_scope(|| {
            tags.in_scope(|| info_span!("inner").in_scope(|| {}));
            info_span!("gpu work", device = "gpu", lane = "no").in_scope(|| {});
            info_span!("actor work", lane = %"scheduler").in_scope(|| {});
        });
        info_span!("after").in_scope(|| {});
    });
    assert_eq!(names(&timeline), ["outer", "tagged", "inner", "gpu work", "actor work", "after"]);
    let parent = |name: &str| span(&timeline, name).parent.map(|at| &timeline.spans[at].name[..]);
    assert_eq!(parent("tagged"), Some("outer"));
    assert_eq!(parent("inner"), Some("tagged"));
    assert_eq!(parent("after"), None);
    let expected = Tags {
        chunk: Some(3),
        request: Some(4),
        stage: Some(1),
        layer: None,
        role: None,
        phase: None,
        rows: 2,
        epoch: 5,
        bytes: 1 << 40,
        flops: 0,
    };
    assert_eq!(span(&timeline, "tagged").tags, expected);
    assert_eq!(span(&timeline, "tagged").activity, Activity::Copy);
    assert_eq!(span(&timeline, "inner").activity, Activity::Other);
    assert_eq!(lane(&timeline, span(&timeline, "gpu work")), ("gpu", LaneKind::Device));
    assert_eq!(lane(&timeline, span(&timeline, "actor work")), ("scheduler", LaneKind::Actor));
    let thread = thread::current().name().unwrap_or("thread 1").to_owned();
    assert_eq!(lane(&timeline, span(&timeline, "outer")), (&thread[..], LaneKind::Thread));
    assert!(timeline.spans.iter().all(|span| span.finished));
    assert_eq!(timeline.orphans, 0);
}

#[test]
fn fields_recorded_after_creation_are_used() {
    let timeline = run(Scope::All, |_| {
        let late = info_span!("late", rows = tracing::field::Empty, device = "gpu");
        late.in_scope(|| {});
        late.record("rows", 7);
        late.in_scope(|| {});
    });
    let seen: Vec<(u32, &str)> =
        timeline.spans.iter().map(|s| (s.tags.rows, lane(&timeline, s).0)).collect();
    assert_eq!(seen, [(0, "gpu"), (7, "gpu")]);
}

#[test]
fn visits_that_start_while_recording_is_on_are_recorded() {
    let timeline = run(Scope::Off, |recorder| {
        let plain = info_span!("plain");
        let placed = info_span!("placed", device = "gpu", chunk = 9);
        let quiet = info_span!("quiet").entered();
        recorder.set_scope(Scope::All);
        plain.in_scope(|| placed.in_scope(|| {}));
        drop(quiet);
        let cut = info_span!("cut").entered();
        recorder.set_scope(Scope::Off);
        info_span!("unseen").in_scope(|| info!("unseen too"));
        drop(cut);
        recorder.set_scope(Scope::All);
        info_span!("last").in_scope(|| {});
    });
    assert_eq!(names(&timeline), ["plain", "placed", "cut", "last"]);
    assert_eq!(lane(&timeline, span(&timeline, "placed")), ("gpu", LaneKind::Device));
    assert_eq!(span(&timeline, "placed").tags.chunk, Some(9));
    assert!(span(&timeline, "cut").finished);
    assert_eq!(span(&timeline, "last").parent, None);
    assert_eq!(timeline.orphans, 0);
}

#[test]
fn with_scope_marked_only_marked_spans_and_their_children_are_recorded() {
    let timeline = run(Scope::Marked, |recorder| {
        info_span!("plain").in_scope(|| info!("plain"));
        info_span!("asks", marked = true).in_scope(|| {
            info_span!("inside").in_scope(|| info!("mark"));
        });
        recorder.set_scope(Scope::Off);
        let early = info_span!("early", marked = true);
        let between = early.in_scope(|| info_span!("between"));
        recorder.set_scope(Scope::Marked);
        between.in_scope(|| {});
    });
    assert_eq!(names(&timeline), ["asks", "inside", "mark", "between"]);
}

#[test]
fn events_become_counters_and_marks() {
    let timeline = run(Scope::All, |_| {
        info_span!("work", lane = "a").in_scope(|| {
            info!(counter.depth = 1, "ignored");
            info!(rows = 3, "mark {}", 1);
        });
        info_span!("work2", lane = "b").in_scope(|| {
            info!(counter.depth = 2u64, counter.load = 0.6);
            info!(counter.depth = -3, lane = "c");
            info!("{}", "long ".repeat(100));
            info!(unknown = 1);
        });
    });
    let counters: BTreeMap<(&str, &str), Vec<i64>> = timeline
        .counters
        .iter()
        .map(|c| {
            let values = c.values.iter().map(|(_, value)| *value).collect();
            ((&timeline.lanes[c.lane].name[..], &c.name[..]), values)
        })
        .collect();
    let expected =
        [(("a", "depth"), vec![1, 2]), (("b", "load"), vec![1]), (("c", "depth"), vec![-3])];
    assert_eq!(counters, BTreeMap::from(expected));
    let mark = span(&timeline, "mark 1");
    assert_eq!((mark.duration(), mark.tags.rows, mark.finished), (0, 3, true));
    assert_eq!(mark.parent.map(|at| &timeline.spans[at].name[..]), Some("work"));
    assert!(timeline.spans.iter().any(|s| s.name.len() == 80 && s.name.starts_with("long")));
    assert!(timeline.spans.iter().any(|s| s.name.contains("a_program_is_shown_wrongly")));
}

#[test]
fn many_distinct_event_messages_leave_room_for_names() {
    let timeline = run(Scope::All, |_| {
        for n in 0..3000 {
            info!("text {n}");
        }
        info_span!("a name").in_scope(|| {});
    });
    let texts = timeline.spans.iter().filter(|s| s.name.starts_with("text ")).count();
    assert_eq!((texts, timeline.spans.len()), (1024, 3001));
    span(&timeline, "a name");
}

#[test]
fn follows_from_becomes_a_message() {
    let timeline = run(Scope::All, |_| {
        let (first, never) = (info_span!("first"), info_span!("never entered"));
        first.in_scope(|| {});
        let second = info_span!("second");
        second.follows_from(&first);
        second.follows_from(&never);
        second.in_scope(|| {});
        second.in_scope(|| {});
    });
    assert_eq!(timeline.messages.len(), 1);
    let message = &timeline.messages[0];
    let (from, to) = (&timeline.spans[message.from.unwrap()], &timeline.spans[message.to.unwrap()]);
    assert_eq!((&from.name[..], &to.name[..]), ("first", "second"));
    assert_eq!((message.sent, message.received), (from.end, Some(to.start)));
}

#[test]
fn spans_may_end_in_any_order() {
    let timeline = run(Scope::All, |_| {
        let (a, b) = (info_span!("a").entered(), info_span!("b").entered());
        drop(a);
        let c = info_span!("c").entered();
        drop((b, c));
    });
    assert!(timeline.spans.iter().all(|span| span.finished));
    assert_eq!(timeline.orphans, 0);
}
