//! Spans and events of a program that uses `tracing` appear on the timeline as they happened.

use std::collections::BTreeMap;
use std::sync::{Arc, Barrier};
use std::thread;

use lapwing_traces::event::{Activity, LaneKind, Tags};
use lapwing_traces::layer::TimelineLayer;
use lapwing_traces::timeline::Span;
use lapwing_traces::{Clock, OsClock, Recorder, RecorderConfig, Scope, Timeline};
use tracing::{Dispatch, Instrument, info, info_span};
use tracing_subscriber::layer::SubscriberExt;

fn recorder(scope: Scope) -> Recorder {
    let recorder = Recorder::new(Arc::new(OsClock::start()), RecorderConfig::default());
    recorder.set_scope(scope);
    recorder
}

fn subscriber(recorder: &Recorder) -> Dispatch {
    Dispatch::new(tracing_subscriber::registry().with(TimelineLayer::new(recorder.clone())))
}

fn run(scope: Scope, program: impl FnOnce(&Recorder)) -> Timeline {
    let recorder = recorder(scope);
    tracing::dispatcher::with_default(&subscriber(&recorder), || program(&recorder));
    let recording = recorder.recording();
    assert_eq!(recording.dropped, 0);
    Timeline::new(&recording)
}

fn span<'a>(timeline: &'a Timeline, name: &str) -> &'a Span {
    let mut named = timeline.spans.iter().filter(|span| span.name == name);
    let first = named.next().unwrap_or_else(|| panic!("no {name} in {:?}", timeline.spans));
    assert!(named.next().is_none(), "one {name}");
    first
}

fn names(timeline: &Timeline) -> Vec<&str> {
    timeline.spans.iter().map(|span| span.name.as_str()).collect()
}

fn lane<'a>(timeline: &'a Timeline, span: &Span) -> (&'a str, LaneKind) {
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
fn a_span_entered_on_another_thread_receives_a_message() {
    let timeline = run(Scope::All, |_| {
        let spawned = info_span!("boss").in_scope(|| info_span!("hand"));
        tracing::dispatcher::get_default(|dispatch| {
            thread::scope(|scope| {
                scope.spawn(|| {
                    tracing::dispatcher::with_default(dispatch, || spawned.in_scope(|| {}))
                });
            });
        });
        spawned.in_scope(|| {});
        let same = info_span!("boss 2").in_scope(|| info_span!("same thread"));
        same.in_scope(|| {});
    });
    assert_eq!(timeline.messages.len(), 1, "{:?}", timeline.messages);
    let message = &timeline.messages[0];
    let ends = [message.from, message.to].map(|at| &timeline.spans[at.unwrap()]);
    assert_eq!(
        (&ends[0].name[..], &ends[1].name[..], &message.name[..]),
        ("boss", "hand", "spawn")
    );
    assert_ne!(ends[0].lane, ends[1].lane);
    assert_eq!(message.received, Some(ends[1].start));
    assert!(ends[0].start <= message.sent && message.sent <= ends[0].end);
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

#[test]
fn threads_of_one_name_or_without_name_have_lanes_of_their_own() {
    let timeline = run(Scope::All, |recorder| {
        let dispatch = subscriber(recorder);
        let work =
            || tracing::dispatcher::with_default(&dispatch, || info_span!("s").in_scope(|| {}));
        for _ in 0..3 {
            let barrier = &Barrier::new(3);
            thread::scope(|scope| {
                let start = |name: Option<&str>| {
                    let builder = thread::Builder::new();
                    let builder = match name {
                        Some(name) => builder.name(name.into()),
                        None => builder,
                    };
                    let both = || {
                        barrier.wait();
                        work();
                        barrier.wait();
                    };
                    builder.spawn_scoped(scope, both).unwrap()
                };
                let threads = [Some("same"), Some("same"), None].map(start);
                // Only a joined thread has surely released its name.
                threads.into_iter().for_each(|thread| thread.join().unwrap());
            });
        }
    });
    let mut lanes: Vec<&str> = timeline.lanes.iter().map(|lane| &lane.name[..]).collect();
    lanes.sort_unstable();
    assert_eq!(lanes, ["same", "same 2", "thread 1"], "a lane is used again by the next thread");
    assert_eq!(timeline.spans.len(), 9);
}

/// A clock that logs when it is read, and so calls the layer from inside itself.
struct LoggingClock(OsClock);

impl Clock for LoggingClock {
    fn now(&self) -> lapwing_traces::Nanos {
        info!("the clock is read");
        info_span!("asked").in_scope(|| {});
        self.0.now()
    }
}

struct AtTheEnd;

impl Drop for AtTheEnd {
    fn drop(&mut self) {
        info_span!("at the thread's end").in_scope(|| info!("still here"));
    }
}

thread_local! {
    static LAST: AtTheEnd = const { AtTheEnd };
}

#[test]
fn calls_from_inside_the_layer_and_from_ending_threads_are_ignored() {
    let clock = Arc::new(LoggingClock(OsClock::start()));
    let recorder = Recorder::new(clock, RecorderConfig::default());
    recorder.set_scope(Scope::All);
    let dispatch = subscriber(&recorder);
    let program = move || {
        LAST.with(|_| {});
        let guard = tracing::dispatcher::set_default(&dispatch);
        info_span!("work").in_scope(|| {});
        // The thread ends while the subscriber is still set.
        std::mem::forget(guard);
    };
    #[expect(clippy::disallowed_methods, reason = "a thread that ends is what is tested")]
    thread::spawn(program).join().unwrap();
    let timeline = Timeline::new(&recorder.recording());
    assert!(span(&timeline, "work").finished);
}

#[test]
fn every_poll_of_a_task_is_recorded_on_a_multi_threaded_runtime() {
    const TASKS: usize = 20;
    const STEPS: usize = 5;
    let recorder = recorder(Scope::All);
    let dispatch = subscriber(&recorder);
    let for_threads = dispatch.clone();
    tracing::dispatcher::with_default(&dispatch, || {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(3)
            .on_thread_start(move || {
                std::mem::forget(tracing::dispatcher::set_default(&for_threads));
            })
            .build()
            .unwrap();
        runtime.block_on(
            async {
                let mut tasks = tokio::task::JoinSet::new();
                for n in 0..TASKS {
                    let step = || async {
                        info_span!("step").in_scope(|| {});
                        tokio::task::yield_now().await;
                    };
                    let task = async move {
                        for _ in 0..STEPS {
                            step().await;
                        }
                    };
                    tasks.spawn(task.instrument(info_span!("task", chunk = n)));
                }
                while let Some(task) = tasks.join_next().await {
                    task.unwrap();
                }
            }
            .instrument(info_span!("all")),
        );
    });
    let recording = recorder.recording();
    assert_eq!(recording.dropped, 0);
    let timeline = Timeline::new(&recording);
    let of = |name: &str| timeline.spans.iter().filter(|s| s.name == name).collect::<Vec<_>>();
    assert_eq!(of("step").len(), TASKS * STEPS);
    for step in of("step") {
        let parent = &timeline.spans[step.parent.expect("a step is inside its task")];
        assert_eq!((&parent.name[..], parent.lane), ("task", step.lane));
    }
    // One poll for each step and a last one; dropping an instrumented task enters its span once
    // more.
    for chunk in 0..TASKS as u64 {
        let polls = of("task").iter().filter(|s| s.tags.chunk == Some(chunk)).count();
        assert_eq!(polls, STEPS + 2, "task {chunk}");
    }
    assert!(timeline.spans.iter().all(|s| s.finished));
    let spawned: Vec<_> = timeline.messages.iter().filter(|m| m.name == "spawn").collect();
    assert_eq!(spawned.len(), TASKS, "the main thread makes tasks, workers run them");
    for message in spawned {
        let (from, to) = (message.from.expect("sender"), message.to.expect("receiver"));
        assert_eq!(timeline.spans[from].name, "all");
        assert_eq!(timeline.spans[to].name, "task");
    }
    assert_eq!(timeline.orphans, 0);
}
