use std::collections::{BTreeSet, VecDeque};

use lapwing_engine::routing::by_name;

use super::*;

const POLICIES: [&str; 3] = ["preble", "d2lpm:quantum=2000", "min-makespan"];

/// Prompt tokens that the workers compute in a second.
const RATES: [f64; 4] = [1000.0, 1000.0, 500.0, 2000.0];

fn members(rates: &[f64], cached: &[usize]) -> Vec<Member> {
    let member = |at: usize| Member {
        instance: 100 + at as u64,
        prompt_rate: Some(rates[at]),
        kv_tokens: 20_000,
        cached: cached[at],
    };
    (0..rates.len()).map(member).collect()
}

/// A prompt with a beginning that others have, too.
fn prompt(text: u32, own: u32) -> Vec<u32> {
    let shared = (0..320).map(|at| text * 1000 + at);
    shared.chain((0..48).map(|at| 1_000_000 + own * 100 + at)).collect()
}

fn ask<'a>(ids: &'a [u32], client: &'a ClientId, avoided: &'a [u64]) -> Ask<'a> {
    Ask { ids, client, tokens_max: 20, avoided }
}

/// The policy alone beside the router, both with the requests that they have sent.
struct Both {
    live: Router,
    policy: Box<dyn RoutePolicy>,
    workers: Workers,
    sent: VecDeque<(Sent, SentAlone)>,
    /// Prompts that have been computed, and where.
    computed: Vec<(u64, Vec<u32>)>,
}

#[derive(Clone)]
struct SentAlone {
    number: u64,
    client: ClientId,
    worker: WorkerId,
    ids: Vec<u32>,
    at: Nanos,
    first: Option<Nanos>,
}

impl SentAlone {
    fn told(&self, generated_tokens: usize) -> SentRequest<'_> {
        let SentAlone { number, worker, at: sent, first: first_token, .. } = *self;
        let (client, prompt_tokens) = (&self.client, self.ids.len());
        SentRequest { number, client, worker, prompt_tokens, generated_tokens, sent, first_token }
    }
}

impl Both {
    fn new(name: &str) -> Both {
        let (choice, policy) = (RouteChoice::from(name), by_name(name).expect("a policy"));
        let workers = Workers::new(specs(&members(&RATES, &[0; 4])));
        let (sent, computed) = (VecDeque::new(), Vec::new());
        Both { live: Router::new(choice), policy, workers, sent, computed }
    }

    /// What Dynamo's index knows of a prompt.
    fn overlap(&self, instance: u64, ids: &[u32]) -> usize {
        let same =
            |text: &[u32]| text.iter().zip(ids).take_while(|(one, other)| one == other).count();
        let of = self.computed.iter().filter(|entry| entry.0 == instance);
        of.map(|entry| same(&entry.1) / 16 * 16).max().unwrap_or(0)
    }

    /// Sends a request by both, and returns their workers.
    fn send(&mut self, number: u64, now: Nanos) -> (u64, WorkerId) {
        let (ids, client) = (prompt(number as u32 % 7, number as u32), number % 3);
        let client = ClientId::from(["a", "b", "c"][client as usize]);
        let cached: Vec<usize> = (100..104).map(|it| self.overlap(it, &ids)).collect();
        let live = self.live.route(ask(&ids, &client, &[]), &members(&RATES, &cached), now);
        let live = live.expect("a policy").expect("a worker");
        let incoming = Incoming { number, client: &client, ids: &ids, tokens_max: 20 };
        let worker = self.policy.route(&incoming, &self.workers, now);
        self.workers.on_sent(worker, ids.len());
        let instance = live.instance;
        let alone = SentAlone { number, client, worker, ids, at: now, first: None };
        self.sent.push_back((live, alone));
        (instance, worker)
    }

    /// The latest request but so many gets its first token.
    fn first_token(&mut self, later: usize, now: Nanos) {
        let Some(place) = self.sent.len().checked_sub(later + 1) else { return };
        let (live, alone) = &mut self.sent[place];
        alone.first = Some(now);
        self.live.first_token(live, now);
        self.workers.on_first_token(alone.worker, alone.ids.len());
        self.policy.first_token(&alone.told(1), now);
        self.computed.push((live.instance, alone.ids.clone()));
    }

    /// The oldest request ends if there are more than so many.
    fn end(&mut self, most: usize, now: Nanos) {
        if self.sent.len() <= most {
            return;
        }
        let Some((live, alone)) = self.sent.pop_front() else { return };
        self.live.finish(&live, 20, now);
        self.workers.on_end(alone.worker, alone.ids.len(), true);
        self.policy.finish(&alone.told(20), now);
    }
}

#[test]
fn a_request_goes_where_the_policy_object_sends_it_on_the_same_state() {
    let others = ["round-robin", "least-load", "power-of-two", "cache-aware"];
    for name in POLICIES.iter().chain(&others) {
        let (mut both, mut chosen) = (Both::new(name), BTreeSet::new());
        for number in 1..=200 {
            let at = |ms: u64| Nanos(number * 50_000_000 + ms * 1_000_000);
            let (instance, worker) = both.send(number, at(0));
            assert_eq!(instance, 100 + u64::from(worker.0), "{name}: request {number}");
            chosen.insert(worker);
            both.first_token(2, at(10));
            both.end(6, at(20));
        }
        assert_eq!(both.live.numbers(), both.policy.numbers(), "{name}");
        assert!(chosen.len() > 1, "{name}: one worker has all requests");
    }
}

#[test]
fn what_dynamos_index_has_decides_and_what_it_has_no_longer_does_not() {
    let client = ClientId::from("a");
    let route = |router: &mut Router, cached: [usize; 3], at: u64| {
        let ids = prompt(1, at as u32);
        let members = members(&[1000.0; 3], &cached);
        let sent = router.route(ask(&ids, &client, &[]), &members, Nanos(at));
        let mut sent = sent.expect("a policy").expect("a worker");
        router.first_token(&mut sent, Nanos(at));
        router.finish(&sent, 1, Nanos(at));
        (sent.instance - 100) as usize
    };
    for name in POLICIES {
        let mut router = Router::new(RouteChoice::from(name));
        assert_eq!(route(&mut router, [0, 0, 320], 1), 2, "{name}");
        let mut router = Router::new(RouteChoice::from(name));
        let first = route(&mut router, [0; 3], 1);
        let mut cached = [0; 3];
        cached[(first + 1) % 3] = 320;
        assert_eq!(route(&mut router, cached, 2), (first + 1) % 3, "{name}");
    }
}

#[test]
fn a_prompt_that_is_still_computed_counts_as_cached() {
    let client = ClientId::from("a");
    let mut router = Router::new(RouteChoice::from("d2lpm"));
    let mut route = |own, at| {
        let ids = prompt(1, own);
        let members = members(&[1000.0; 3], &[0; 3]);
        let sent = router.route(ask(&ids, &client, &[]), &members, Nanos(at));
        sent.expect("a policy").expect("a worker").instance
    };
    assert_eq!(route(1, 1), route(2, 2));
}

#[test]
fn a_request_never_goes_back_to_a_worker_that_has_failed_it() {
    let (rates, client, ids) = ([1000.0; 3], ClientId::from("a"), prompt(1, 1));
    for name in POLICIES {
        let mut router = Router::new(RouteChoice::from(name));
        let members = members(&rates, &[0, 320, 0]);
        let mut failed = Vec::new();
        for at in 1..=3 {
            let sent = router.route(ask(&ids, &client, &failed), &members, Nanos(at));
            let sent = sent.expect("a policy").expect("a worker");
            assert!(!failed.contains(&sent.instance), "{name}");
            router.finish(&sent, 0, Nanos(at));
            failed.push(sent.instance);
        }
        assert_eq!(failed[0], 101, "{name}");
        // None is left: Dynamo reports why.
        let sent = router.route(ask(&ids, &client, &failed), &members, Nanos(4));
        assert!(sent.expect("a policy").is_some(), "{name}");
    }
}

#[test]
fn workers_come_and_go_while_requests_run() {
    let (client, ids) = (ClientId::from("a"), prompt(1, 1));
    for name in POLICIES {
        let mut router = Router::new(RouteChoice::from(name));
        let (few, many) = (members(&[1000.0; 2], &[0; 2]), members(&[1000.0; 4], &[0, 0, 0, 320]));
        let route = |router: &mut Router, members: &[Member], at| {
            router.route(ask(&ids, &client, &[]), members, Nanos(at)).expect("a policy")
        };
        let mut before = route(&mut router, &few, 1).expect("a worker");
        assert_eq!(route(&mut router, &many, 2).expect("a worker").instance, 103, "{name}");
        // It was sent before the others came.
        router.first_token(&mut before, Nanos(3));
        router.finish(&before, 5, Nanos(4));
        assert!(route(&mut router, &few, 5).expect("a worker").instance < 102, "{name}");
        assert!(route(&mut router, &[], 6).is_none(), "{name}");
    }
}
