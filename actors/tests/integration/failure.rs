//! Failures are named errors, end the streams that they concern, and never hang the engine.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use lapwing_actors::RunError;
use lapwing_actors::drive::live::{Events, Live};
use lapwing_actors::message::{Shutdown, StreamEvent};
use lapwing_kernels::device::DeviceError;
use lapwing_plan::Phase;
use lapwing_plan::strategy::{ChunkShape, CpuOnly, PlanInput, Strategy};
use lapwing_plan::{PlanError, Route};
use lapwing_traces::Nanos;

use crate::support::{Fault, Setup, World, foretell, generate, live, prompt, recorder, request};

pub fn submit(engine: &Live, ids: &[u32], tokens: usize) -> Result<Events, RunError> {
    engine.submit(engine.admit()?, request(ids, tokens))
}

pub fn last(events: &mut Events) -> StreamEvent {
    loop {
        match events.next_blocking() {
            StreamEvent::Prompt(_)
            | StreamEvent::Token(_)
            | StreamEvent::Scores(_)
            | StreamEvent::Hidden(_) => {}
            end => return end,
        }
    }
}

#[test]
fn a_device_error_ends_its_streams_and_the_engine_goes_on() {
    let fault: Fault = Arc::new(|n| {
        (n == 3).then(|| DeviceError::Failed { device: "x".into(), reason: "planted".into() })
    });
    let mut world = World::new(&Setup { fault, ..Setup::default() });
    let (a, b) = (prompt(1, 10), prompt(2, 10));
    let mut lost = world.submit(Nanos(0), &a, generate(&a, 20));
    let mut later = world.submit(Nanos(50_000_000), &b, generate(&b, 20));
    world.sim.run();
    lost.drain();
    later.drain();
    assert!(matches!(&lost.end, Some(Err(RunError::Device { device, reason }))
        if device == "oracle-0" && reason.contains("planted")));
    assert_eq!(later.tokens, foretell(&b, 20).0);
    world.assert_empty();
}

#[test]
fn a_dead_actor_ends_every_stream_and_every_later_one_by_its_name() {
    let fault: Fault = Arc::new(|n| if n == 4 { panic!("planted panic") } else { None });
    let live = live(&Setup { fault, ..Setup::default() }, 4, &recorder()).0;
    let p = prompt(1, 10);
    let mut streams: Vec<_> = (0..3).map(|_| submit(&live, &p, 50).expect("alive")).collect();
    for events in &mut streams {
        let end = last(events);
        assert!(
            matches!(&end, StreamEvent::Failed(RunError::ActorDied { actor, reason })
                if actor == "oracle-0" && reason.contains("planted panic")),
            "{end:?}"
        );
        assert!(matches!(events.next_blocking(), StreamEvent::Failed(_)), "still ended");
    }
    drop(streams);
    let error = match submit(&live, &p, 5) {
        Err(error) => error,
        Ok(mut events) => match last(&mut events) {
            StreamEvent::Failed(error) => error,
            other => panic!("{other:?}"),
        },
    };
    assert!(
        matches!(&error, RunError::ActorDied { actor, .. } if actor == "oracle-0"),
        "a later request: {error}"
    );
}

/// Panics at a decode step, once it is armed.
struct Planted(AtomicBool);

impl Strategy for Planted {
    fn name(&self) -> &str {
        "planted"
    }

    fn route(&self, input: &PlanInput<'_>, shape: &ChunkShape) -> Result<Arc<Route>, PlanError> {
        let is_wanted = self.0.load(Ordering::SeqCst);
        assert!(!(is_wanted && shape.phase == Phase::Decode), "planted panic");
        CpuOnly.route(input, shape)
    }
}

/// The scheduler plans that route when a worker reports, most likely on the worker's thread.
#[test]
fn a_scheduler_that_panics_on_a_workers_thread_leaves_its_callers_waiting() {
    for _ in 0..20 {
        let planted = Arc::new(Planted(AtomicBool::new(false)));
        let strategy = Some(Arc::clone(&planted) as Arc<dyn Strategy>);
        let live = live(&Setup { strategy, ..Setup::default() }, 4, &recorder()).0;
        planted.0.store(true, Ordering::SeqCst);
        let mut streams: Vec<_> =
            [60, 90].map(|rows| submit(&live, &prompt(1, rows), 50).expect("alive")).into();
        for events in &mut streams {
            let end = last(events);
            assert!(
                matches!(&end, StreamEvent::Failed(RunError::ActorDied { actor, reason })
                    if actor == "scheduler" && reason.contains("panic")),
                "{end:?}"
            );
        }
        let later = submit(&live, &prompt(1, 10), 5).map(|mut events| last(&mut events));
        assert!(matches!(later, Err(_) | Ok(StreamEvent::Failed(_))), "{later:?}");
        live.shutdown(Shutdown::Now);
    }
}

#[test]
fn draining_finishes_what_is_there_and_takes_nothing_new() {
    let engine = live(&Setup::default(), 4, &recorder()).0;
    let p = prompt(1, 30);
    let mut events = submit(&engine, &p, 20).expect("alive");
    engine.shutdown(Shutdown::Drain);
    assert!(matches!(last(&mut events), StreamEvent::Finished(_)));
    assert!(submit(&engine, &p, 20).is_err());
}

#[test]
fn an_engine_that_is_dropped_ends_its_streams() {
    let engine = live(&Setup::default(), 4, &recorder()).0;
    let p = prompt(1, 30);
    let mut events = submit(&engine, &p, 200).expect("alive");
    drop(engine);
    let end = last(&mut events);
    assert!(matches!(end, StreamEvent::Failed(_) | StreamEvent::Finished(_)), "{end:?}");
}

#[test]
fn one_request_too_many_is_refused_at_the_door() {
    let (open, gate) = flume::bounded::<()>(0);
    let fault: Fault = Arc::new(move |_| {
        // Blocks until the sender is dropped.
        let _ = gate.recv();
        None
    });
    let engine = live(&Setup { fault, ..Setup::default() }, 4, &recorder()).0;
    let p = prompt(1, 100);
    let held: Vec<_> = (0..4).map(|_| submit(&engine, &p, 50).expect("a permit")).collect();
    assert_eq!(submit(&engine, &p, 1).err(), Some(RunError::QueueFull { limit: 4 }));
    drop(open);
    for mut events in held {
        assert!(matches!(last(&mut events), StreamEvent::Finished(_)));
    }
    assert!(submit(&engine, &p, 1).is_ok());
}

#[test]
fn many_dropped_streams_do_not_fill_the_mailbox() {
    let engine = live(&Setup::default(), 4, &recorder()).0;
    let p = prompt(1, 3);
    let mut finished = Vec::new();
    for _ in 0..200 {
        let mut events = submit(&engine, &p, 1).expect("a permit");
        assert!(matches!(last(&mut events), StreamEvent::Finished(_)));
        finished.push(events);
    }
    drop(finished);
    let mut events = submit(&engine, &p, 1).expect("the mailbox has room");
    assert!(matches!(last(&mut events), StreamEvent::Finished(_)));
    engine.shutdown(Shutdown::Drain);
    assert_eq!(submit(&engine, &p, 1).err(), Some(RunError::ShuttingDown));
}

#[test]
fn a_request_that_races_with_the_end_is_answered() {
    for _ in 0..200 {
        let engine = live(&Setup::default(), 4, &recorder()).0;
        let p = prompt(1, 3);
        std::thread::scope(|scope| {
            let late = scope.spawn(|| match submit(&engine, &p, 2) {
                Ok(mut events) => last(&mut events),
                Err(error) => StreamEvent::Failed(error),
            });
            engine.shutdown(Shutdown::Now);
            let end = late.join().expect("no panic");
            assert!(
                matches!(
                    end,
                    StreamEvent::Finished(_) | StreamEvent::Failed(RunError::ShuttingDown)
                ),
                "{end:?}"
            );
        });
    }
}
