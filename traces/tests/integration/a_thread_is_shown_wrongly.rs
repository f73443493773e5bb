//! Programs with several threads and tasks, as their timelines show them.

use std::sync::{Arc, Barrier};
use std::thread;

use lapwing_traces::{Clock, OsClock, Recorder, RecorderConfig, Scope, Timeline};
use tracing::{Instrument, info, info_span};

use crate::a_program_is_shown_wrongly::{recorder, run, span, subscriber};

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
