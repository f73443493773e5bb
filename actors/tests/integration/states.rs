//! Models whose layers keep a state of a sequence.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use lapwing_traces::Scope;
use lapwing_traces::event::{EventKind, Milestone};

use crate::oracle::PAGE_ROWS;
use crate::random_schedules::{Dice, run_on, setup};
use crate::support::{Setup, World, foretell, generate, generate_drafted, prompt};

#[test]
fn each_row_continues_the_state_of_the_row_before_it_in_random_schedules() {
    let is_full = std::env::var("LAPWING_TEST").is_ok_and(|mode| mode == "full");
    let seeds = if is_full { 10_000 } else { 1000 };
    for seed in 0..seeds {
        let mut dice = Dice::new(seed);
        let setup = setup(&mut dice);
        // From plenty to none for others to go on.
        let state_places = setup.config.sequences_max as u32 + dice.below(8) as u32;
        run_on(&Setup { states: true, state_places, ..setup }, dice, seed, Scope::Off);
    }
}

/// An engine whose requests share prefixes of a model with states.
fn world(setup: Setup) -> World {
    World::new(&Setup { states: true, prefixes: Some(None), ..setup })
}

/// Runs a request to its end. Returns its tokens, and how many rows were not computed.
fn answer(world: &mut World, ids: &[u32], tokens_max: usize) -> (Vec<u32>, usize) {
    let before = world.sim.scheduler().stats().all.cached_tokens;
    let mut stream = world.submit(world.sim.now(), ids, generate(ids, tokens_max));
    world.sim.run();
    stream.drain();
    assert_eq!(stream.tokens, foretell(ids, tokens_max).0);
    (stream.tokens, world.sim.scheduler().stats().all.cached_tokens - before)
}

#[test]
fn a_conversation_goes_on_at_its_latest_row() {
    let mut world = world(Setup::default());
    let mut ids = prompt(3, 4 * PAGE_ROWS + 3);
    let mut known = 0;
    for turn in 0..4 {
        let (tokens, cached) = answer(&mut world, &ids, 9);
        assert_eq!(cached, known, "turn {turn}");
        ids.extend(tokens);
        // The last token has no row yet.
        known = ids.len() - 1;
        ids.extend(prompt(turn, 5));
    }
}

#[test]
fn a_prompt_that_is_sent_again_goes_on_at_its_last_whole_page() {
    let mut world = world(Setup::default());
    let ids = prompt(3, 4 * PAGE_ROWS + 3);
    for known in [0, 4 * PAGE_ROWS, 4 * PAGE_ROWS] {
        assert_eq!(answer(&mut world, &ids, 9).1, known);
    }
}

#[test]
fn prompts_that_begin_alike_go_on_where_one_of_them_left_the_others() {
    let mut world = world(Setup::default());
    let common = prompt(3, 7 * PAGE_ROWS + 1);
    let text = |seed: u32| [&common[..], &prompt(seed, 20)].concat();
    // The first one keeps states where the rows before double: after 1, 2 and 4 pages.
    let known = [0, 4 * PAGE_ROWS, 7 * PAGE_ROWS, 7 * PAGE_ROWS];
    world.sim.recorder().set_scope(Scope::All);
    let found: Vec<usize> = (10..14).map(|seed| answer(&mut world, &text(seed), 3).1).collect();
    assert_eq!(found, known);
    // None has a state behind the last row that all know, in a page of its own, nor the second one behind three pages.
    let recording = world.sim.recorder().recording();
    let again = recording.events.iter().filter_map(|event| match event.kind {
        EventKind::Request(_, Milestone::Recomputed, tokens) => Some(tokens as usize),
        _ => None,
    });
    assert_eq!(again.collect::<Vec<_>>(), [3 * PAGE_ROWS + 1, 1, 1]);
}

#[test]
fn requests_that_wait_for_the_rows_of_another_have_its_state() {
    let mut world = world(Setup { chunk_rows: 2 * PAGE_ROWS, ..Setup::default() });
    let common = prompt(3, 7 * PAGE_ROWS + 1);
    let streams: Vec<_> = (10..16)
        .map(|seed| {
            let ids = [&common[..], &prompt(seed, 20)].concat();
            (world.submit(world.sim.now(), &ids, generate(&ids, 3)), ids)
        })
        .collect();
    world.sim.run();
    for (mut stream, ids) in streams {
        stream.drain();
        assert_eq!(stream.tokens, foretell(&ids, 3).0);
    }
    assert_eq!(world.sim.scheduler().stats().all.cached_tokens, 5 * 7 * PAGE_ROWS);
}

#[test]
fn without_free_places_states_are_not_kept_and_requests_wait() {
    let mut setup = Setup { state_places: 2, ..Setup::default() };
    setup.config.sequences_max = 4;
    let mut world = world(setup);
    let prompts: Vec<_> = (0..6).map(|seed| prompt(seed, 3 * PAGE_ROWS)).collect();
    let at = world.sim.now();
    let send = |ids: &Vec<u32>| world.submit(at, ids, generate(ids, 4));
    let streams: Vec<_> = prompts.iter().map(send).collect();
    world.sim.run();
    for (mut stream, ids) in streams.into_iter().zip(&prompts) {
        stream.drain();
        assert_eq!(stream.tokens, foretell(ids, 4).0);
    }
    assert_eq!(world.states.free_pages() + world.sim.scheduler().cached_states(), 2);
}

#[test]
fn a_draft_that_is_rejected_leaves_the_state_before_it() {
    let mut world = World::new(&Setup { states: true, state_places: 6, ..Setup::default() });
    let (mut prompts, mut tokens) = (0, 0);
    for seed in 0..40 {
        let ids = prompt(seed, 9);
        let task = generate_drafted(&ids, 30, u64::from(seed));
        let mut stream = world.submit(world.sim.now(), &ids, task);
        world.sim.run();
        stream.drain();
        assert_eq!(stream.tokens, foretell(&ids, 30).0, "seed {seed}");
        prompts += ids.len();
        tokens += stream.tokens.len();
    }
    world.assert_empty();
    let run = |count: &[Arc<AtomicUsize>]| count[0].load(Ordering::Relaxed);
    assert!(run(&world.stages_run) < tokens * 9 / 10, "drafts are accepted");
    assert!(run(&world.rows_run) > (prompts + tokens) * 11 / 10, "and rejected");
}
