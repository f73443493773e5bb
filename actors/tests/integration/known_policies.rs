//! The policies that have a name, in random schedules: they lose and starve nothing, and keep their promises.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lapwing_actors::RunError;
use lapwing_actors::policy::{
    Candidate, Charge, ClientId, End, PolicyChoice, PrefixView, QueuePolicy, Rank, Vtc, known,
};
use lapwing_traces::Nanos;

use crate::cases::cases;
use crate::random_schedules::{Dice, setup};
use crate::requests::{Draw, Request, play};
use crate::support::{Setup, World, generate, prompt};

/// A random schedule under a policy: every request ends with exactly its tokens, and nothing leaks.
fn run(name: &str, seed: u64) {
    let mut dice = Dice::new(seed);
    let setup = Setup { policy: PolicyChoice::from(name), ..setup(&mut dice) };
    let mut world = World::new(&setup);
    let requests = (0..2 + dice.below(10)).map(|i| {
        let (prompt_tokens, tokens_max) = (1 + dice.below(60) as usize, dice.below(30) as usize);
        let at = Nanos(dice.below(3_000_000));
        let cancel_at = (dice.below(5) == 0).then(|| Nanos(at.0 + dice.below(6_000_000)));
        let drafted = (i % 4 == 0).then_some(seed + i);
        let draw = Draw { prompt_tokens, tokens_max, at, cancel_at, drafted, embeds: None };
        let client = ["a", "b", "c"][dice.below(3) as usize];
        Request::submit_of(&mut world, client, seed as u32 + dice.below(1 + i) as u32, draw)
    });
    let requests = requests.collect();
    play(&mut world, requests, seed);
}

/// Every second policy, from one of the first two on: the halves run at the same time.
fn run_half(first: usize) {
    for known in known().iter().skip(first).step_by(2) {
        for seed in 0..cases(60, 4_000) {
            run(known.name(), seed * 31 + known.name().len() as u64);
        }
    }
}

#[test]
fn every_policy_gives_every_request_its_tokens() {
    run_half(0);
}

#[test]
fn every_other_policy_gives_every_request_its_tokens() {
    run_half(1);
}

/// In this schedule a sequence is admitted with a copy of a cached page, and preempted at once for one that needs
/// its pages.
#[test]
fn a_copy_that_is_not_made_keeps_no_page_from_others() {
    run("fcfs-overtaking", 157_402);
}

#[test]
fn a_refused_request_gets_the_time_to_wait_and_the_others_their_tokens() {
    let setup = Setup { policy: PolicyChoice::from("srtf:rpm=2,rpm.b=1"), ..Setup::default() };
    let mut world = World::new(&setup);
    let submit = |(client, second): (&str, u64)| {
        let (prompt, at) = (prompt(second as u32, 9), Nanos(second * 1_000_000_000));
        world.submit_of(client, at, &prompt, generate(&prompt, 3))
    };
    let sent = [("a", 0), ("a", 1), ("b", 2), ("a", 3), ("b", 30), ("a", 61)];
    let mut streams: Vec<_> = sent.map(submit).into();
    world.sim.run();
    let refused = |client: &str, seconds| {
        let retry_after = Duration::from_secs(seconds);
        Some(RunError::RateLimited { client: client.into(), retry_after })
    };
    let expected = [None, None, None, refused("a", 57), refused("b", 32), None];
    for (stream, expected) in streams.iter_mut().zip(expected) {
        stream.drain();
        assert_eq!(stream.end.clone().expect("it has ended").err(), expected);
        assert!(expected.is_some() == stream.tokens.is_empty());
    }
    world.assert_empty();
}

/// Virtual token counters, and the service that clients got by an account of its own.
#[derive(Clone, Debug, Default)]
struct Watched {
    vtc: Vtc,
    service: Arc<Mutex<Service>>,
}

#[derive(Debug, Default)]
struct Service {
    got: HashMap<ClientId, f64>,
    waiting: HashMap<ClientId, usize>,
    charged: Vec<u64>,
    /// Service when both clients began to wait, and the largest difference since then.
    since: Option<HashMap<ClientId, f64>>,
    worst: f64,
}

impl Service {
    fn look(&mut self) {
        if self.waiting.len() < 2 || self.waiting.values().any(|waiting| *waiting == 0) {
            self.since = None;
            return;
        }
        let got = self.got.clone();
        let since = self.since.get_or_insert(got);
        let more =
            |client| self.got.get(client).unwrap_or(&0.0) - since.get(client).unwrap_or(&0.0);
        let all: Vec<f64> = self.waiting.keys().map(more).collect();
        self.worst = self.worst.max((all[0] - all[1]).abs());
    }
}

impl QueuePolicy for Watched {
    fn name(&self) -> &str {
        "watched"
    }

    fn rank(&self, request: &Candidate<'_>, prefixes: &dyn PrefixView, now: Nanos) -> Rank {
        self.vtc.rank(request, prefixes, now)
    }

    fn arrive(&mut self, request: &Candidate<'_>, now: Nanos) {
        self.vtc.arrive(request, now);
        let mut service = self.service.lock().expect("no panic");
        *service.waiting.entry(request.client.clone()).or_default() += 1;
        service.look();
    }

    fn admitted(&mut self, request: &Candidate<'_>, now: Nanos) {
        self.vtc.admitted(request, now);
        let mut service = self.service.lock().expect("no panic");
        *service.waiting.get_mut(request.client).expect("it has arrived") -= 1;
        if !service.charged.contains(&request.sequence.0) {
            service.charged.push(request.sequence.0);
            *service.got.entry(request.client.clone()).or_default() += request.prompt_tokens as f64;
        }
        service.look();
    }

    fn charge(&mut self, request: &Candidate<'_>, charge: Charge, now: Nanos) {
        self.vtc.charge(request, charge, now);
        let mut service = self.service.lock().expect("no panic");
        *service.got.entry(request.client.clone()).or_default() +=
            2.0 * charge.generated_tokens as f64;
        service.look();
    }

    fn evicted(&mut self, request: &Candidate<'_>, rows: usize, now: Nanos) {
        self.vtc.evicted(request, rows, now);
        let mut service = self.service.lock().expect("no panic");
        *service.waiting.get_mut(request.client).expect("it has arrived") += 1;
        service.look();
    }

    fn finish(&mut self, request: &Candidate<'_>, end: End, now: Nanos) {
        self.vtc.finish(request, end, now);
    }
}

#[test]
fn backlogged_clients_differ_by_no_more_than_the_bound_of_vtc() {
    const PROMPT_MAX: u64 = 50;
    let (mut worst, mut bounds) = (0.0_f64, 0.0_f64);
    for seed in 0..cases(30, 300) {
        let mut dice = Dice::new(seed);
        let watched = Watched::default();
        let service = Arc::clone(&watched.service);
        let choice = PolicyChoice::made_by(move || watched.clone());
        let mut setup = Setup { policy: choice, ..Setup::default() };
        setup.pages = 23 + dice.below(40) as u32;
        setup.config.sequences_max = 2 + dice.below(6) as usize;
        let mut world = World::new(&setup);
        // One client has many short requests, the other few long ones.
        let streams: Vec<_> = (0..40)
            .map(|at| {
                let (client, most) = [("short", 8), ("long", PROMPT_MAX)][usize::from(at % 4 == 0)];
                let ids = prompt(seed as u32 * 50 + at, 1 + dice.below(most) as usize);
                let tokens = 1 + dice.below(30) as usize;
                world.submit_of(client, Nanos(dice.below(200_000)), &ids, generate(&ids, tokens))
            })
            .collect();
        world.sim.run();
        world.assert_empty();
        assert!(streams.into_iter().all(|mut stream| {
            stream.drain();
            stream.end.is_some_and(|end| end.is_ok())
        }));
        // M: the tokens that the KV cache holds.
        let kv_tokens = f64::from(setup.pages) * crate::support::PAGE_ROWS as f64;
        let bound = 2.0 * (PROMPT_MAX as f64).max(2.0 * kv_tokens);
        let found = service.lock().expect("no panic").worst;
        assert!(found <= bound, "seed {seed}: {found} for {bound}");
        (worst, bounds) = (worst.max(found), bounds.max(bound));
    }
    assert!(worst > 0.05 * bounds, "too little to tell: {worst} of {bounds}");
}
