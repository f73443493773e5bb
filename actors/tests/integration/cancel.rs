//! Dropping a stream cancels its request; its pages and permits are free within one step.

use lapwing_actors::message::SchedulerMessage;
use lapwing_traces::Nanos;

use crate::support::{Setup, World, foretell, generate, prompt};

#[test]
fn a_dropped_stream_frees_everything_within_one_step() {
    for steps in [1, 2, 3, 5, 9, 20, 33] {
        let mut world = World::new(&Setup { chunk_rows: 4, ..Setup::default() });
        let p = prompt(3, 30);
        let mut stream = world.submit(Nanos(0), &p, generate(&p, 60));
        for _ in 0..steps {
            world.sim.step();
        }
        stream.receiver = None;
        let dropped = world.sim.now();
        world.sim.send_at(dropped, SchedulerMessage::Wake);
        let end = world.sim.run();
        world.assert_empty();
        // The chunk that is being computed ends; the queued one never begins.
        assert!(end <= dropped + std::time::Duration::from_micros(140), "{end} after {dropped}");
    }
}

#[test]
fn the_neighbours_of_a_cancelled_sequence_do_not_notice() {
    let mut world = World::new(&Setup::default());
    let (a, b) = (prompt(1, 20), prompt(2, 20));
    let mut dropped = world.submit(Nanos(0), &a, generate(&a, 40));
    let mut kept = world.submit(Nanos(0), &b, generate(&b, 40));
    for _ in 0..12 {
        world.sim.step();
    }
    dropped.receiver = None;
    world.sim.run();
    kept.drain();
    assert_eq!(kept.tokens, foretell(&b, 40).0);
    world.assert_empty();
}

#[test]
fn a_request_cancelled_in_the_queue_never_runs() {
    let mut setup = Setup::default();
    setup.config.sequences_max = 1;
    let mut world = World::new(&setup);
    let (a, b) = (prompt(1, 20), prompt(2, 20));
    let mut first = world.submit(Nanos(0), &a, generate(&a, 10));
    let mut queued = world.submit(Nanos(0), &b, generate(&b, 10));
    world.sim.step();
    world.sim.step();
    queued.receiver = None;
    world.sim.run();
    first.drain();
    let (tokens, _) = foretell(&a, 10);
    assert_eq!(first.tokens, tokens);
    let rows = world.rows_run[0].load(std::sync::atomic::Ordering::Relaxed);
    assert_eq!(rows, a.len() + tokens.len() - 1);
    world.assert_empty();
}
