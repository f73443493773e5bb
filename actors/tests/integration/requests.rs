//! Requests of random schedules, some of which are cancelled during the run, and checks of their
//! results.

use std::ops::{Range, RangeFrom};

use lapwing_actors::RunError;
use lapwing_actors::message::{FinishReason, SchedulerMessage, Task};
use lapwing_actors::policy::ClientId;
use lapwing_actors::stats::{EngineStats, Work};
use lapwing_traces::{Nanos, Recording};

use crate::oracle::hidden;
use crate::support::{Stream, World, foretell, generate, generate_drafted, prompt};

/// More events than any of the schedules has.
const STEPS_MAX: usize = 1_000_000;

/// A sent prompt, and the time at which its caller cancels.
pub struct Request {
    prompt: Vec<u32>,
    tokens_max: usize,
    embeds: Option<Range<usize>>,
    cancel_at: Option<Nanos>,
    stream: Stream,
}

/// Random parameters of a request.
pub struct Draw {
    pub prompt_tokens: usize,
    pub tokens_max: usize,
    pub at: Nanos,
    pub cancel_at: Option<Nanos>,
    /// Seed of its drafter, if it has one.
    pub drafted: Option<u64>,
    /// The rows whose hidden states it asks for, in place of tokens.
    pub embeds: Option<RangeFrom<usize>>,
}

impl Request {
    /// Sends a prompt that `number` determines.
    pub fn submit(world: &mut World, number: u32, draw: Draw) -> Request {
        Request::submit_of(world, ClientId::anonymous(), number, draw)
    }

    /// As [`submit`](Request::submit), for a client.
    pub fn submit_of(
        world: &mut World,
        client: impl Into<ClientId>,
        number: u32,
        draw: Draw,
    ) -> Request {
        let Draw { prompt_tokens, tokens_max, at, cancel_at, drafted, embeds } = draw;
        let prompt = prompt(number, prompt_tokens);
        let embeds = embeds.map(|rows| rows.start.min(prompt_tokens - 1)..prompt_tokens);
        let task = match (&embeds, drafted) {
            (Some(rows), _) => Task::Embed { rows: rows.clone() },
            (None, None) => generate(&prompt, tokens_max),
            (None, Some(seed)) => generate_drafted(&prompt, tokens_max, seed),
        };
        let stream = world.submit_of(client, at, &prompt, task);
        if let Some(at) = cancel_at {
            world.sim.send_at(at, SchedulerMessage::Wake);
        }
        Request { prompt, tokens_max, embeds, cancel_at, stream }
    }

    /// Checks its tokens: exactly the expected ones, or a prefix of them if it was cancelled or hit a
    /// planted fault.
    fn check(&self, seed: u64, layers: usize) {
        let (tokens, rows, reason) = match &self.embeds {
            None => {
                let (tokens, reason) = foretell(&self.prompt, self.tokens_max);
                (tokens, Vec::new(), reason)
            }
            Some(rows) => {
                let rows = hidden(&self.prompt, rows.clone(), layers);
                (Vec::new(), rows, FinishReason::Embedded)
            }
        };
        let stream = &self.stream;
        assert!(tokens.starts_with(&stream.tokens), "seed {seed}: wrong tokens");
        assert!(rows.starts_with(&stream.hidden), "seed {seed}: wrong hidden states");
        match &stream.end {
            Some(Ok(found)) => {
                let all = (&stream.tokens, &stream.hidden, *found);
                assert_eq!(all, (&tokens, &rows, reason), "seed {seed}");
            }
            Some(Err(RunError::Device { reason, .. })) => {
                assert!(reason.contains("planted"), "seed {seed}: {reason}");
            }
            Some(Err(error)) => panic!("seed {seed}: {error}"),
            None => assert!(self.cancel_at.is_some(), "seed {seed}: a stream never ended"),
        }
    }
}

/// Runs to the end and checks that nothing is lost and nothing leaks.
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
    // Every required wake has been sent; only a stream that was dropped between the last two events
    // is seen no sooner than at the next message.
    let stuck = requests.iter().find(|r| r.stream.receiver.is_some() && r.stream.end.is_none());
    assert!(stuck.is_none(), "seed {seed}: a stream never ended");
    world.sim.send_at(world.sim.now(), SchedulerMessage::Wake);
    world.sim.run();
    world.assert_empty();
    check_accounts(&world.sim.scheduler().stats(), &requests, seed);
    for request in &requests {
        request.check(seed, world.layers);
    }
    world.sim.recorder().recording()
}

/// Every request has ended once, and every token is in the account of a client.
fn check_accounts(stats: &EngineStats, requests: &[Request], seed: u64) {
    let Work { requests: sent, finished, failed, cancelled, generated_tokens, .. } = stats.all;
    assert_eq!(sent, requests.len(), "seed {seed}");
    assert_eq!(finished + failed + cancelled, sent, "seed {seed}: {stats:?}");
    let received: usize = requests.iter().map(|request| request.stream.tokens.len()).sum();
    let exact = requests.iter().all(|request| request.cancel_at.is_none());
    assert!(
        received <= generated_tokens && (received == generated_tokens || !exact),
        "seed {seed}"
    );
    let timed: usize = stats.clients.iter().map(|client| client.latencies.ttft_ms.count).sum();
    assert!(timed <= finished && timed == stats.latencies.ttft_ms.count, "seed {seed}: {stats:?}");
    let sum = |of: fn(&Work) -> usize| stats.clients.iter().map(|client| of(&client.work)).sum();
    let parts: [usize; 3] = [
        sum(|work| work.requests),
        sum(|work| work.generated_tokens),
        sum(|work| work.prompt_tokens + work.cached_tokens),
    ];
    let all = [sent, generated_tokens, stats.all.prompt_tokens + stats.all.cached_tokens];
    assert_eq!(parts, all, "seed {seed}");
}
