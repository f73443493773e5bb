//! Models whose layers keep a state of a sequence.

use lapwing_actors::RunError;
use lapwing_traces::{Nanos, Scope};

use crate::oracle::PAGE_ROWS;
use crate::random_schedules::{Dice, run_on, setup};
use crate::support::{Setup, World, foretell, generate, generate_drafted, prompt};

#[test]
fn each_row_continues_the_state_of_the_row_before_it_in_random_schedules() {
    for seed in 0..1000 {
        let mut dice = Dice::new(seed);
        let setup = Setup { states: true, ..setup(&mut dice) };
        run_on(&setup, dice, seed, Scope::Off);
    }
}

#[test]
fn requests_go_on_at_the_end_of_whole_pages_only() {
    let setup = Setup { states: true, prefixes: Some(None), ..Setup::default() };
    let mut world = World::new(&setup);
    let ids = prompt(3, 4 * PAGE_ROWS + 3);
    for known in [0, 4 * PAGE_ROWS] {
        let mut stream = world.submit(world.sim.now(), &ids, generate(&ids, 9));
        world.sim.run();
        stream.drain();
        assert_eq!(stream.tokens, foretell(&ids, 9).0);
        let all = world.sim.scheduler().stats().all;
        assert_eq!(all.cached_tokens, known);
    }
}

#[test]
fn drafts_are_refused_by_name() {
    for states in [false, true] {
        let mut world = World::new(&Setup { states, ..Setup::default() });
        let ids = prompt(3, 9);
        let mut stream = world.submit(Nanos(0), &ids, generate_drafted(&ids, 9, 5));
        world.sim.run();
        stream.drain();
        let refused = matches!(&stream.end, Some(Err(RunError::Drafts)));
        assert_eq!(refused, states, "{:?}", stream.end);
    }
}
