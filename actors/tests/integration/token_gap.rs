//! Streams beside prompts: each has its next token in time, no request starves, and no token changes.

use std::sync::Arc;
use std::time::Duration;

use lapwing_actors::message::Task;
use lapwing_actors::policy::{PolicyChoice, Urgency, known};
use lapwing_plan::strategy::CpuOnly;
use lapwing_plan::time::FixedRate;
use lapwing_traces::event::{Event, EventKind, Milestone};
use lapwing_traces::{Nanos, Recording, Scope, Timeline};

use crate::cases::cases;
use crate::random_schedules::{Dice, setup};
use crate::requests::{Draw, Request, play};
use crate::support::{Setup, World, foretell, generate, prompt};
use crate::two_models;

mod drafts;

pub(crate) const MICRO: u64 = 1_000;

/// One device on which a row takes 10 µs, and a chunk 200 µs more.
pub(crate) fn one_device() -> Setup {
    let rate = FixedRate { per_stage: micros(200), per_row: micros(10) };
    let mut setup = Setup { chunk_rows: 512, rates: vec![rate], pages: 4096, ..Setup::default() };
    setup.config.context = 8192;
    setup
}

pub(crate) fn micros(micros: u64) -> Duration {
    Duration::from_micros(micros)
}

/// A prompt of so many tokens after which at least `least` tokens are generated.
fn long_answer(tokens: usize, least: usize) -> Vec<u32> {
    let is_long = |ids: &Vec<u32>| foretell(ids, least).0.len() == least;
    (0..).map(|seed| prompt(seed, tokens)).find(is_long).expect("one of them")
}

/// Times of a request's tokens.
pub(crate) fn arrivals(recording: &Recording, request: u64) -> Vec<u64> {
    let of = |event: &Event| match event.kind {
        EventKind::Request(number, Milestone::Token, _) if number == request => Some(event.at.0),
        _ => None,
    };
    recording.events.iter().filter_map(of).collect()
}

/// The longest time between two tokens of a request.
fn worst_gap(recording: &Recording, request: u64) -> u64 {
    let arrivals = arrivals(recording, request);
    arrivals.windows(2).map(|pair| pair[1] - pair[0]).max().expect("tokens")
}

/// Rows of the chunks that computed prompt rows of a request alone or with others, by a device's spans.
fn chunk_rows(recording: &Recording) -> Vec<u32> {
    all_chunk_rows(recording).into_iter().filter(|rows| *rows > 8).collect()
}

/// Rows of all chunks.
fn all_chunk_rows(recording: &Recording) -> Vec<u32> {
    let timeline = Timeline::new(recording);
    let spans = timeline.outer().map(|span| &timeline.spans[span]);
    let computes = spans.filter(|span| span.tags.chunk.is_some() && span.tags.flops > 0);
    computes.map(|span| span.tags.rows).collect()
}

/// A stream, beside which a prompt of 4000 tokens arrives. Returns the recording, and when the prompt had its token.
fn stream_beside_a_prompt(setup: &Setup, target: Option<Duration>) -> (Recording, u64) {
    let mut world = World::new(setup);
    world.sim.recorder().set_scope(Scope::All);
    let (first, second) = (long_answer(40, 400), prompt(3, 4000));
    world.urgency.token_gap = target;
    let _stream = world.submit(Nanos(0), &first, generate(&first, 400));
    world.urgency.token_gap = None;
    let at = 10_000 * MICRO;
    let _prompt = world.submit(Nanos(at), &second, generate(&second, 1));
    world.sim.run();
    world.assert_empty();
    let recording = world.sim.recorder().recording();
    let token = arrivals(&recording, 1)[0];
    (recording, token - at)
}

#[test]
fn a_stream_waits_no_longer_than_its_target_while_a_prompt_is_computed() {
    let (_, whole) = stream_beside_a_prompt(&one_device(), Some(Duration::from_secs(10)));
    for (target, price) in [(600, 1.7), (1_000, 1.4), (2_000, 1.15), (4_000, 1.1)] {
        let (recording, time) = stream_beside_a_prompt(&one_device(), Some(micros(target)));
        let worst = worst_gap(&recording, 0);
        assert!(worst <= target * MICRO, "target {target} µs: {worst} ns");
        // The target is used: it leaves room for less than a tile, and for what predictions are kept away from it.
        assert!(worst >= target * MICRO / 2, "target {target} µs: {worst} ns");
        let slower = time as f64 / whole as f64;
        assert!(slower <= price, "target {target} µs: {slower:.2} times the time");
    }
}

#[test]
fn a_target_that_cannot_be_kept_starves_no_prompt() {
    let (recording, _) = stream_beside_a_prompt(&one_device(), Some(micros(1)));
    // Each step of the stream takes the fewest prompt rows along, until it ends.
    let rows = all_chunk_rows(&recording);
    assert!(rows.iter().filter(|rows| **rows == 5).count() > 300, "{rows:?}");
    assert_eq!(worst_gap(&recording, 0), (200 + 5 * 10) * MICRO);
}

#[test]
fn without_a_target_chunks_are_short_beside_a_stream_only() {
    let (recording, _) = stream_beside_a_prompt(&one_device(), None);
    let rows = chunk_rows(&recording);
    // 512 rows take 10.4 µs each, 256 take 10.8 and 128 take 11.6, which is more than 94 % of the rate allow.
    assert!(rows[1..].iter().all(|rows| *rows <= 257) && rows[2] == 257, "{rows:?}");
    assert_eq!(worst_gap(&recording, 0), (200 + 257 * 10) * MICRO);
    let mut world = World::new(&one_device());
    world.sim.recorder().set_scope(Scope::All);
    let ids = prompt(3, 4000);
    let _alone = world.submit(Nanos(0), &ids, generate(&ids, 1));
    world.sim.run();
    let rows = chunk_rows(&world.sim.recorder().recording());
    assert_eq!(rows[0], 512, "{rows:?}");
}

#[test]
fn several_streams_and_prompts_keep_the_engines_target() {
    let target = micros(2_500);
    let setup = Setup { token_gap: Some(target), ..one_device() };
    for drafted in [false, true] {
        let mut world = World::new(&setup);
        world.sim.recorder().set_scope(Scope::All);
        let requests: Vec<Request> = (0..10)
            .map(|number| {
                let (prompt_tokens, tokens_max) = if number < 8 { (30, 200) } else { (3000, 5) };
                let at = Nanos(if number < 8 { 0 } else { 8_000 * MICRO });
                let drafted = drafted.then_some(u64::from(number) * 4 + 1);
                let draw =
                    Draw { prompt_tokens, tokens_max, at, cancel_at: None, drafted, embeds: None };
                Request::submit(&mut world, number, draw)
            })
            .collect();
        let recording = play(&mut world, requests, 0);
        let gaps = (0..8).filter(|request| arrivals(&recording, *request).len() > 1);
        for request in gaps {
            let worst = worst_gap(&recording, request);
            assert!(worst <= target.as_nanos() as u64, "drafts {drafted}, {request}: {worst} ns");
        }
    }
}

#[test]
fn a_stream_of_another_model_on_the_device_has_its_turn() {
    let setup = || two_models::Setup {
        strategies: [Arc::new(CpuOnly), Arc::new(CpuOnly)],
        devices: 1,
        chunk_rows: 64,
        pages: [256, 256],
        ..two_models::Setup::default()
    };
    let mut engine = two_models::Engine::new(&setup());
    engine.sim.recorder().set_scope(Scope::All);
    let (stream, long) = (long_answer(10, 60), prompt(5, 120));
    let _stream = engine.send(1, Nanos(0), &stream, generate(&stream, 60));
    let receivers: Vec<_> =
        (0..6).map(|_| engine.send(0, Nanos(200 * MICRO), &long, generate(&long, 1))).collect();
    engine.sim.run();
    drop(receivers);
    let recording = engine.sim.recorder().recording();
    // One chunk of 64 rows, and its own step.
    let most = (20 + 64 * 2 + 20 + 2) * MICRO;
    let worst = worst_gap(&recording, 0);
    assert!(worst <= most, "{worst} ns");
    // The prompts go on meanwhile: the stream has at most two tokens for each of their chunks.
    let last = arrivals(&recording, 6)[0];
    let meanwhile = arrivals(&recording, 0).iter().filter(|at| **at < last).count();
    assert!(meanwhile <= 40, "{meanwhile} tokens before the last prompt");
}

#[test]
fn an_embedding_has_its_turn_beside_a_stream() {
    let mut world = World::new(&one_device());
    world.sim.recorder().set_scope(Scope::All);
    let (stream, text) = (long_answer(40, 400), prompt(3, 600));
    let _stream = world.submit(Nanos(0), &stream, generate(&stream, 400));
    let at = 10_000 * MICRO;
    let _embedding = world.submit(Nanos(at), &text, Task::Embed { rows: 0..600 });
    world.sim.run();
    let recording = world.sim.recorder().recording();
    let end = recording.events.iter().find_map(|event| match event.kind {
        EventKind::Request(1, Milestone::Finished, _) => Some(event.at.0),
        _ => None,
    });
    let took = end.expect("its end") - at;
    assert!(took < 2 * (600 * 10 + 3 * 200 + 4 * 210) * MICRO, "{took} ns");
    assert!(worst_gap(&recording, 0) < 3_500 * MICRO);
}

#[test]
fn an_embedding_has_its_turn_beside_a_stream_and_a_prompt() {
    let mut world = World::new(&one_device());
    world.sim.recorder().set_scope(Scope::All);
    let (stream, long, text) = (long_answer(40, 400), prompt(5, 4000), prompt(3, 600));
    let _stream = world.submit(Nanos(0), &stream, generate(&stream, 400));
    let _prompt = world.submit(Nanos(10_000 * MICRO), &long, generate(&long, 1));
    let _embedding = world.submit(Nanos(11_000 * MICRO), &text, Task::Embed { rows: 0..600 });
    world.sim.run();
    let recording = world.sim.recorder().recording();
    let is_end =
        |event: &&Event| matches!(event.kind, EventKind::Request(2, Milestone::Finished, _));
    let end = recording.events.iter().find(is_end).expect("its end").at.0;
    assert!(end < arrivals(&recording, 1)[0], "it waits for the whole prompt");
}

#[test]
fn targets_classes_and_drafts_change_no_token_and_starve_no_request() {
    for seed in 0..cases(1_000, 10_000) {
        let mut dice = Dice::new(seed ^ 0x70_6b65_6e67_6170);
        let mut setup = setup(&mut dice);
        setup.token_gap = (dice.below(2) == 0).then(|| micros(dice.below(4_000)));
        setup.chunk_rows = 1 + dice.below(200) as usize;
        // Any policy but the one that refuses requests.
        let policies: Vec<&str> = known().iter().map(|known| known.name()).collect();
        let policy = policies[dice.below(policies.len() as u64) as usize];
        setup.policy = PolicyChoice::from(if policy == "rpm" { "fcfs" } else { policy });
        let mut world = World::new(&setup);
        let requests = (0..1 + dice.below(12)).map(|i| {
            world.urgency = Urgency {
                priority: dice.below(4) as i32 - 2,
                deadline: (dice.below(3) == 0).then(|| micros(dice.below(5_000))),
                token_gap: (dice.below(2) == 0).then(|| micros(dice.below(3_000))),
            };
            let at = Nanos(dice.below(4_000_000));
            let draw = Draw {
                prompt_tokens: 1 + dice.below(60) as usize,
                tokens_max: dice.below(30) as usize,
                at,
                cancel_at: (dice.below(4) == 0).then(|| Nanos(at.0 + dice.below(6_000_000))),
                drafted: (i % 3 == 0).then_some(seed + i),
                embeds: (i % 5 == 4).then_some(i as usize..),
            };
            Request::submit(&mut world, seed as u32 + dice.below(1 + i) as u32, draw)
        });
        let requests = requests.collect();
        play(&mut world, requests, seed);
    }
}

#[test]
fn a_schedule_in_virtual_time_is_the_same_each_time() {
    let run = || stream_beside_a_prompt(&one_device(), Some(micros(1_700))).0.events;
    assert_eq!(run(), run());
}
