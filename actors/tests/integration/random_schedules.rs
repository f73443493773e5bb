//! A thousand random interleavings of submit, cancel, finish, device errors and page shortage:
//! nothing is lost, nothing leaks, and every stream that ends well has exactly its tokens.

use std::sync::Arc;

use lapwing_actors::RunError;
use lapwing_actors::message::SchedulerMessage;
use lapwing_kernels::device::DeviceError;
use lapwing_traces::{Nanos, Recording, Scope};
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};

use crate::support::{Fault, Setup, Stream, World, foretell, generate, prompt};

struct Dice(ChaCha8Rng);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0.next_u64() % limit
    }
}

struct Request {
    prompt: Vec<u32>,
    tokens_max: usize,
    cancel_at: Option<Nanos>,
    stream: Stream,
}

fn setup(dice: &mut Dice) -> Setup {
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
    setup
}

/// Plays a random schedule out and checks it.
pub fn run(seed: u64, scope: Scope) -> Recording {
    let mut dice = Dice(ChaCha8Rng::seed_from_u64(seed));
    let setup = setup(&mut dice);
    let mut world = World::new(&setup);
    world.sim.recorder().set_scope(scope);
    let mut requests: Vec<Request> = (0..1 + dice.below(12))
        .map(|i| {
            let prompt = prompt(seed as u32 + i as u32, 1 + dice.below(60) as usize);
            let tokens_max = dice.below(30) as usize;
            let at = Nanos(dice.below(4_000_000));
            let cancel_at = (dice.below(3) == 0).then(|| Nanos(at.0 + dice.below(6_000_000)));
            let stream = world.submit(at, &prompt, generate(&prompt, tokens_max));
            if let Some(at) = cancel_at {
                world.sim.send_at(at, SchedulerMessage::Wake);
            }
            Request { prompt, tokens_max, cancel_at, stream }
        })
        .collect();
    loop {
        let now = world.sim.now();
        for request in &mut requests {
            request.stream.drain();
            if request.cancel_at.is_some_and(|at| at <= now) {
                request.stream.receiver = None;
            }
        }
        if !world.sim.step() {
            break;
        }
    }
    // A stream dropped between the last two events is seen at the next message.
    world.sim.send_at(world.sim.now(), SchedulerMessage::Wake);
    world.sim.run();
    world.assert_empty();
    for request in &requests {
        check(seed, request);
    }
    world.sim.recorder().recording()
}

fn check(seed: u64, request: &Request) {
    let (tokens, reason) = foretell(&request.prompt, request.tokens_max);
    let stream = &request.stream;
    assert!(tokens.starts_with(&stream.tokens), "seed {seed}: wrong tokens");
    match &stream.end {
        Some(Ok(found)) => {
            assert_eq!((&stream.tokens, *found), (&tokens, reason), "seed {seed}");
        }
        Some(Err(RunError::Device { reason, .. })) => {
            assert!(reason.contains("planted"), "seed {seed}: {reason}");
        }
        Some(Err(error)) => panic!("seed {seed}: {error}"),
        None => assert!(request.cancel_at.is_some(), "seed {seed}: a stream never ended"),
    }
}

#[test]
fn a_thousand_random_interleavings_lose_and_leak_nothing() {
    for seed in 0..1000 {
        run(seed, Scope::Off);
    }
}
