//! Cutting, batching and routing of a prompt do not change a single token.

use lapwing_actors::message::{FinishReason, Shutdown, StreamEvent};
use lapwing_traces::Nanos;

use crate::support::{Setup, World, foretell, generate, live, prompt, recorder, request};

const LENGTHS: [usize; 8] = [1, 3, 7, 16, 17, 31, 64, 100];

#[test]
fn chunk_sizes_and_routes_give_the_same_tokens_alone_and_among_eight() {
    for devices in [1, 2, 3] {
        for chunk_rows in [1, 7, 32, 64, 512] {
            let setup = Setup { chunk_rows, devices, ..Setup::default() };
            let mut world = World::new(&setup);
            let prompts: Vec<_> =
                LENGTHS.iter().enumerate().map(|(i, len)| prompt(i as u32, *len)).collect();
            let mut streams: Vec<_> =
                prompts.iter().map(|p| world.submit(Nanos(0), p, generate(p, 24))).collect();
            world.sim.run();
            for (prompt, stream) in prompts.iter().zip(&mut streams) {
                stream.drain();
                let (tokens, reason) = foretell(prompt, 24);
                let case = format!("{devices} devices, chunks of {chunk_rows}, {}", prompt.len());
                assert_eq!(stream.tokens, tokens, "{case}");
                assert_eq!(stream.end, Some(Ok(reason)), "{case}");
            }
            world.assert_empty();
        }
    }
}

#[test]
fn every_row_is_computed_exactly_once_on_every_device() {
    let setup = Setup { devices: 3, ..Setup::default() };
    let mut world = World::new(&setup);
    let prompts: Vec<_> = (0..5).map(|i| prompt(i, 20 + i as usize)).collect();
    let _streams: Vec<_> =
        prompts.iter().map(|p| world.submit(Nanos(0), p, generate(p, 10))).collect();
    world.sim.run();
    // The last token of a sequence is never fed back.
    let rows: usize = prompts.iter().map(|p| p.len() + foretell(p, 10).0.len() - 1).sum();
    for device in &world.rows_run {
        assert_eq!(device.load(std::sync::atomic::Ordering::Relaxed), rows);
    }
}

#[test]
fn sequences_that_decode_share_one_batch() {
    let mut world = World::new(&Setup::default());
    let long = |p: &Vec<u32>| foretell(p, 40).0.len() == 40;
    let prompts: Vec<_> = (0..).map(|i| prompt(i, 8)).filter(long).take(4).collect();
    let mut streams: Vec<_> = prompts
        .iter()
        .enumerate()
        .map(|(i, p)| world.submit(Nanos(i as u64 * 230_000), p, generate(p, 40)))
        .collect();
    world.sim.run();
    for stream in &mut streams {
        stream.drain();
        assert!(stream.end.is_some());
    }
    // One chunk per prompt, and one decode step per token for all sequences once the last has
    // arrived; two alternating batches would need nearly twice as many.
    let stages = world.stages_run[0].load(std::sync::atomic::Ordering::Relaxed);
    assert!(stages <= 4 + 40 + 8, "{stages} stages");
    world.assert_empty();
}

#[test]
fn virtual_time_is_the_same_from_run_to_run() {
    let run = || {
        let mut world = World::new(&Setup { devices: 2, ..Setup::default() });
        let prompts: Vec<_> = (0..6).map(|i| prompt(i, 13 * (i as usize + 1))).collect();
        let _streams: Vec<_> = prompts
            .iter()
            .enumerate()
            .map(|(i, p)| world.submit(Nanos(i as u64 * 77_777), p, generate(p, 9)))
            .collect();
        world.sim.run()
    };
    assert_eq!(run(), run());
}

#[test]
fn makespan_of_one_sequence_is_the_sum_of_its_stages() {
    let mut world = World::new(&Setup { chunk_rows: 16, ..Setup::default() });
    let p = prompt(1, 40);
    let mut stream = world.submit(Nanos(0), &p, generate(&p, 5));
    let end = world.sim.run();
    stream.drain();
    let decode = stream.tokens.len() as u64 - 1;
    // Three chunks of 16, 16 and 8 rows, then one row per token.
    assert_eq!(end, Nanos(3 * 100_000 + 40 * 10_000 + decode * 110_000));
}

#[test]
fn the_live_driver_gives_the_same_tokens() {
    for devices in [1, 2] {
        let setup = Setup { devices, ..Setup::default() };
        let (live, pool) = live(&setup, 16, &recorder());
        let prompts: Vec<_> = (0..8).map(|i| prompt(i, LENGTHS[i as usize])).collect();
        let streams: Vec<_> = prompts
            .iter()
            .map(|p| {
                let permit = live.admit().expect("a permit");
                live.submit(permit, request(p, 24)).expect("alive")
            })
            .collect();
        for (prompt, mut events) in prompts.iter().zip(streams) {
            let (tokens, reason) = foretell(prompt, 24);
            let mut found = Vec::new();
            let end = loop {
                match events.next_blocking() {
                    StreamEvent::Token(token) => found.push(token.id),
                    StreamEvent::Finished(finished) => break finished.reason,
                    other => panic!("{other:?}"),
                }
            };
            assert_eq!((found, end), (tokens, reason));
        }
        live.shutdown(Shutdown::Drain);
        assert_eq!(pool.free_pages(), pool.capacity());
        assert_eq!(live.requests(), 0);
    }
}

#[test]
fn a_stop_token_ends_the_text_and_is_reported() {
    let found = (0..500).map(|seed| prompt(seed, 5)).find_map(|p| {
        let (tokens, reason) = foretell(&p, 50);
        (reason == FinishReason::Stop && tokens.len() > 3).then_some((p, tokens))
    });
    let (p, tokens) = found.expect("one of 500 prompts stops");
    let mut world = World::new(&Setup::default());
    let mut stream = world.submit(Nanos(0), &p, generate(&p, 50));
    world.sim.run();
    stream.drain();
    assert_eq!(stream.tokens, tokens);
    assert_eq!(stream.end, Some(Ok(FinishReason::Stop)));
}
