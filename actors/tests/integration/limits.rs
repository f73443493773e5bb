//! Requests that cannot be served fail with a named error and do not affect other requests.

use lapwing_actors::RunError;
use lapwing_actors::message::{FinishReason, SchedulerMessage, Shutdown, Task};
use lapwing_traces::Nanos;

use crate::support::{Setup, World, foretell, generate, prompt};

#[test]
fn impossible_requests_are_refused_by_name() {
    let rows: [(Vec<u32>, Result<FinishReason, RunError>); 5] = [
        (vec![], Err(RunError::EmptyPrompt)),
        (vec![1; 256], Err(RunError::PromptTooLong { tokens: 256, context: 256 })),
        (vec![1, 97], Err(RunError::TokenId { id: 97, vocab: 97 })),
        (vec![1; 90], Err(RunError::OutOfKvPages { wanted: 23, capacity: 20 })),
        (vec![2, 3], Ok(foretell(&[2, 3], 5).1)),
    ];
    let mut world = World::new(&Setup { pages: 20, ..Setup::default() });
    for (ids, end) in rows {
        let mut stream = world.submit(world.sim.now(), &ids, generate(&ids, 5));
        world.sim.run();
        stream.drain();
        assert_eq!(stream.end, Some(end));
        world.assert_empty();
    }
}

#[test]
fn a_sequence_that_outgrows_the_whole_cache_fails_and_a_shared_cache_only_delays() {
    let mut world = World::new(&Setup { pages: 8, ..Setup::default() });
    let p = (0..).map(|s| prompt(s, 20)).find(|p| foretell(p, 30).0.len() == 30).expect("one");
    let mut stream = world.submit(Nanos(0), &p, generate(&p, 30));
    world.sim.run();
    stream.drain();
    assert_eq!(stream.end, Some(Err(RunError::OutOfKvPages { wanted: 9, capacity: 8 })));
    world.assert_empty();

    let mut world = World::new(&Setup { pages: 13, ..Setup::default() });
    let prompts: Vec<_> = (0..4).map(|s| prompt(s, 20)).collect();
    let mut streams: Vec<_> =
        prompts.iter().map(|p| world.submit(Nanos(0), p, generate(p, 30))).collect();
    world.sim.run();
    for (p, stream) in prompts.iter().zip(&mut streams) {
        stream.drain();
        assert_eq!(stream.tokens, foretell(p, 30).0);
    }
    world.assert_empty();
}

#[test]
fn a_request_that_needs_pages_of_a_lost_device_fails_and_does_not_wait() {
    let mut world = World::new(&Setup { pages: 10, ..Setup::default() });
    let p = (0..).map(|s| prompt(s, 20)).find(|p| foretell(p, 30).0.len() == 30).expect("one");
    world.pool.withhold(&[0, 3]);
    assert_eq!(world.sim.scheduler().kv_pages_in_use(), 2);
    let too_long = vec![1; 36];
    let error = |wanted| Some(Err(RunError::OutOfKvPages { wanted, capacity: 8 }));
    for (ids, tokens, end) in
        [(&p, 30, error(9)), (&too_long, 5, error(9)), (&p, 5, Some(Ok(foretell(&p, 5).1)))]
    {
        let mut stream = world.submit(world.sim.now(), ids, generate(ids, tokens));
        world.sim.run();
        stream.drain();
        assert_eq!(stream.end, end);
        assert_eq!(world.sim.scheduler().kv_pages_in_use(), 2);
    }
}

#[test]
fn the_context_ends_a_text_that_would_outgrow_it() {
    let mut setup = Setup::default();
    setup.config.context = 24;
    let mut world = World::new(&setup);
    let p = (0..).map(|s| prompt(s, 20)).find(|p| foretell(p, 30).0.len() == 30).expect("one");
    let mut stream = world.submit(Nanos(0), &p, generate(&p, 30));
    let mut none = world.submit(Nanos(0), &p, generate(&p, 0));
    world.sim.run();
    stream.drain();
    none.drain();
    assert_eq!((stream.tokens.len(), stream.end), (4, Some(Ok(FinishReason::Length))));
    assert_eq!((none.tokens.len(), none.end), (0, Some(Ok(FinishReason::Length))));
}

#[test]
fn a_draining_engine_refuses_and_then_stops() {
    let mut world = World::new(&Setup::default());
    let p = prompt(1, 10);
    let mut running = world.submit(Nanos(0), &p, generate(&p, 5));
    world.sim.send_at(Nanos(1), SchedulerMessage::Shutdown(Shutdown::Drain));
    let mut late = world.submit(Nanos(2), &p, Task::Score { from: 1, top: 0 });
    world.sim.run();
    running.drain();
    late.drain();
    assert_eq!(running.tokens, foretell(&p, 5).0);
    assert_eq!(late.end, Some(Err(RunError::ShuttingDown)));
    assert!(world.sim.stopped());
    world.assert_empty();
}
