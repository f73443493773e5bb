//! A thousand random interleavings of submit, cancel, finish, device errors and page shortage:
//! nothing is lost, nothing leaks, and every successful stream has exactly its tokens.

use std::sync::Arc;

use lapwing_kernels::device::DeviceError;
use lapwing_traces::{Nanos, Recording, Scope};
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};

use crate::requests::{Draw, Request, play};
use crate::support::{Fault, Setup, World};

pub struct Dice(ChaCha8Rng);

impl Dice {
    pub fn new(seed: u64) -> Dice {
        Dice(ChaCha8Rng::seed_from_u64(seed))
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        self.0.next_u64() % limit
    }
}

/// A random engine, with pages from plenty to hardly enough, and sometimes with faults.
pub fn setup(dice: &mut Dice) -> Setup {
    let mut setup = Setup { devices: 1 + dice.below(3) as usize, ..Setup::default() };
    setup.chunk_rows = 1 + dice.below(40) as usize;
    setup.config.sequences_max = 1 + dice.below(8) as usize;
    setup.config.permits = 1 + dice.below(4) as usize;
    // From plenty to hardly enough for the longest sequence (60 + 30 rows in pages of 4).
    setup.pages = 23 + dice.below(60) as u32;
    if dice.below(4) == 0 {
        let period = 2 + dice.below(20) as usize;
        let fault: Fault = Arc::new(move |n| {
            (n % period == 0).then(|| DeviceError::Failed {
                device: "oracle".to_owned(),
                reason: "planted".to_owned(),
            })
        });
        setup.fault = fault;
    }
    if dice.below(2) == 0 {
        let failing_copies = (dice.below(2) == 0).then(|| 1 + dice.below(5) as usize);
        setup.prefixes = Some(failing_copies);
    }
    setup
}

/// Runs a random schedule to its end and checks it.
pub fn run(seed: u64, scope: Scope) -> Recording {
    let mut dice = Dice::new(seed);
    let setup = setup(&mut dice);
    run_on(&setup, dice, seed, scope)
}

/// A random schedule of an engine. Models with states make no embeddings.
pub fn run_on(setup: &Setup, mut dice: Dice, seed: u64, scope: Scope) -> Recording {
    let mut world = World::new(setup);
    world.sim.recorder().set_scope(scope);
    let requests = (0..1 + dice.below(12)).map(|i| {
        let (prompt_tokens, tokens_max) = (1 + dice.below(60) as usize, dice.below(30) as usize);
        let at = Nanos(dice.below(4_000_000));
        let cancel_at = (dice.below(3) == 0).then(|| Nanos(at.0 + dice.below(6_000_000)));
        let drafted = (i % 3 == 0).then_some(seed + i);
        let embeds = (i % 5 == 4 && !setup.states).then_some(i as usize..);
        let draw = Draw { prompt_tokens, tokens_max, at, cancel_at, drafted, embeds };
        // Some begin alike.
        Request::submit(&mut world, seed as u32 + dice.below(1 + i) as u32, draw)
    });
    let requests = requests.collect();
    play(&mut world, requests, seed)
}

#[test]
fn a_thousand_random_interleavings_lose_and_leak_nothing() {
    for seed in 0..1000 {
        run(seed, Scope::Off);
    }
}
