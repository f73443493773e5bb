//! Requests of random schedules: they are cancelled in mid-run, and their fate is checked.

use lapwing_actors::RunError;
use lapwing_actors::message::SchedulerMessage;
use lapwing_traces::{Nanos, Recording};

use crate::support::{Stream, World, foretell, generate, generate_drafted, prompt};

/// More events than any of the schedules has.
const STEPS_MAX: usize = 1_000_000;

/// A prompt that was sent, and when its caller stops listening.
pub struct Request {
    prompt: Vec<u32>,
    tokens_max: usize,
    cancel_at: Option<Nanos>,
    stream: Stream,
}

/// What is drawn for a request.
pub struct Draw {
    pub prompt_tokens: usize,
    pub tokens_max: usize,
    pub at: Nanos,
    pub cancel_at: Option<Nanos>,
    /// Seed of its drafter, if it has one.
    pub drafted: Option<u64>,
}

impl Request {
    /// Sends a prompt that `number` determines.
    pub fn submit(world: &mut World, number: u32, draw: Draw) -> Request {
        let Draw { prompt_tokens, tokens_max, at, cancel_at, drafted } = draw;
        let prompt = prompt(number, prompt_tokens);
        let task = match drafted {
            None => generate(&prompt, tokens_max),
            Some(seed) => generate_drafted(&prompt, tokens_max, seed),
        };
        let stream = world.submit(at, &prompt, task);
        if let Some(at) = cancel_at {
            world.sim.send_at(at, SchedulerMessage::Wake);
        }
        Request { prompt, tokens_max, cancel_at, stream }
    }

    /// Its tokens are those foretold, all of them unless it was cancelled or met a planted fault.
    fn check(&self, seed: u64) {
        let (tokens, reason) = foretell(&self.prompt, self.tokens_max);
        let stream = &self.stream;
        assert!(tokens.starts_with(&stream.tokens), "seed {seed}: wrong tokens");
        match &stream.end {
            Some(Ok(found)) => {
                assert_eq!((&stream.tokens, *found), (&tokens, reason), "seed {seed}");
            }
            Some(Err(RunError::Device { reason, .. })) => {
                assert!(reason.contains("planted"), "seed {seed}: {reason}");
            }
            Some(Err(error)) => panic!("seed {seed}: {error}"),
            None => assert!(self.cancel_at.is_some(), "seed {seed}: a stream never ended"),
        }
    }
}

/// Plays everything out: nothing is lost, nothing leaks.
pub fn play(world: &mut World, mut requests: Vec<Request>, seed: u64) -> Recording {
    for step in 0.. {
        assert!(step < STEPS_MAX, "seed {seed}: it goes on for ever");
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
    // Whoever had to be woken has been; only a stream that was dropped between the last two events
    // is seen no sooner than at the next message.
    let stuck = requests.iter().find(|r| r.stream.receiver.is_some() && r.stream.end.is_none());
    assert!(stuck.is_none(), "seed {seed}: a stream never ended");
    world.sim.send_at(world.sim.now(), SchedulerMessage::Wake);
    world.sim.run();
    world.assert_empty();
    for request in &requests {
        request.check(seed);
    }
    world.sim.recorder().recording()
}
