use lapwing_traces::Nanos;
use proptest::prelude::*;

use super::*;
use crate::policy::ClientId;

mod preble;

const SECOND: u64 = 1_000_000_000;

/// 1 ms for each prompt row.
const PREFILL: PrefillTime =
    PrefillTime { constant: 0.0, row: 1e-3, context: 0.0, row_context: 0.0 };

fn workers(speeds: &[f64]) -> Workers {
    let spec = |speed: &f64| WorkerSpec { speed: *speed, kv_tokens: 100_000, prefill: PREFILL };
    Workers::new(speeds.iter().map(spec).collect())
}

/// A prompt of `shared` tokens of a text and `own` tokens that no other prompt has.
fn prompt(text: u32, shared: usize, own: (u32, usize)) -> Vec<u32> {
    let shared = (0..shared as u32).map(|at| text * 100_000 + at);
    shared.chain((0..own.1 as u32).map(|at| own.0 * 7919 + at + (1 << 30))).collect()
}

/// A router with the requests that it has sent.
struct Router {
    policy: Box<dyn RoutePolicy>,
    workers: Workers,
    sent: Vec<(ClientId, WorkerId, usize, Nanos)>,
}

impl Router {
    fn new(policy: &str, speeds: &[f64]) -> Router {
        let policy = by_name(policy).expect("a policy");
        Router { policy, workers: workers(speeds), sent: Vec::new() }
    }

    fn send(&mut self, client: &str, ids: &[u32], at: u64) -> usize {
        let (client, number, tokens_max) = (ClientId::from(client), self.sent.len() as u64, 10);
        let incoming = Incoming { number, client: &client, ids, tokens_max };
        let worker = self.policy.route(&incoming, &self.workers, Nanos(at));
        self.workers.on_sent(worker, ids.len());
        self.sent.push((client, worker, ids.len(), Nanos(at)));
        worker.index()
    }

    fn as_sent(&self, number: usize, tokens: usize, first: Option<Nanos>) -> SentRequest<'_> {
        let (client, worker, prompt_tokens, sent) = &self.sent[number];
        SentRequest {
            number: number as u64,
            client,
            worker: *worker,
            prompt_tokens: *prompt_tokens,
            generated_tokens: tokens,
            sent: *sent,
            first_token: first,
        }
    }

    /// A request gets its first token and ends.
    fn end(&mut self, number: usize, first: u64, end: u64) {
        let (_, worker, prompt_tokens, _) = self.sent[number].clone();
        let (one, all) = (Some(Nanos(first)), 11);
        self.workers.on_first_token(worker, prompt_tokens);
        self.workers.on_end(worker, prompt_tokens, true);
        let mut policy = std::mem::replace(&mut self.policy, Box::new(LeastLoad));
        policy.first_token(&self.as_sent(number, 1, one), Nanos(first));
        policy.finish(&self.as_sent(number, all, one), Nanos(end));
        self.policy = policy;
    }
}

#[test]
fn every_name_finds_the_policy_that_bears_it() {
    for known in known() {
        assert_eq!(by_name(known.name()).expect("is known").name(), known.name());
        for parameter in known.parameters() {
            assert!((parameter.from..=parameter.to).contains(&parameter.default));
        }
    }
    let error = RouteChoice::from("best").make().map(|_| ()).expect_err("unknown").to_string();
    assert!(error.contains("routing policy") && error.contains("cache-aware"), "{error}");
    let own = RouteChoice::from(RoundRobin::default());
    assert_eq!(
        (own.name(), own.make().expect("it is here").name()),
        ("round-robin", "round-robin")
    );
}

#[test]
fn equal_blocks_have_equal_numbers_and_rests_have_none() {
    let ids = prompt(1, 40, (1, 0));
    assert_eq!(blocks(&ids).len(), 2);
    assert_eq!(blocks(&ids)[1], blocks(&ids[16..32])[0]);
    let mut numbers: Vec<u64> =
        (0..1000).flat_map(|text| blocks(&prompt(text, 16, (0, 0)))).collect();
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers.len(), 1000);
    // Stable numbers: other programs may keep them.
    assert_eq!(blocks(&(0..16).collect::<Vec<u32>>()), [0x1c1a_e956_119c_c88e]);
}

#[test]
fn a_prompts_time_is_that_of_four_measurements() {
    let time = |rows: usize, start: usize| {
        let (rows, start) = (rows as f64, start as f64);
        0.5 + 0.1 * rows + 0.02 * start + 0.003 * rows * start
    };
    let fitted = PrefillTime::fit(100, 500, 1000, time);
    for (rows, start) in [(1, 0), (64, 7), (4096, 900)] {
        assert!((fitted.seconds(rows, start) / time(rows, start) - 1.0).abs() < 1e-9);
    }
    assert_eq!(fitted.seconds(0, 100), 0.0);
}

#[test]
fn the_emptier_of_two_workers_gets_the_request() {
    let mut router = Router::new("power-of-two", &[1.0; 2]);
    for number in 0..100 {
        router.send("", &[number], 0);
        let loads = [0, 1].map(|at| router.workers.load(WorkerId(at)).in_flight());
        assert!(loads[0].abs_diff(loads[1]) <= 1, "{loads:?}");
    }
    let mut many = Router::new("power-of-two:seed=7", &[1.0; 10]);
    let to: Vec<usize> = (0..50).map(|number| many.send("", &[number], 0)).collect();
    let mut again = Router::new("power-of-two:seed=7", &[1.0; 10]);
    assert!((0..50).all(|number| again.send("", &[number], 0) == to[number as usize]));
}

#[test]
fn a_prompt_goes_where_most_of_it_is_unless_the_load_is_out_of_balance() {
    let mut router = Router::new("cache-aware:abs=3", &[1.0; 3]);
    let first = router.send("", &prompt(1, 64, (0, 16)), 0);
    let other = router.send("", &prompt(2, 64, (1, 16)), 0);
    assert_ne!(first, other);
    assert_eq!(router.send("", &prompt(1, 64, (2, 16)), 0), first);
    // Half of it is not more than half.
    assert_ne!(router.send("", &prompt(2, 64, (3, 64)), 0), other);
    assert_eq!(router.send("", &prompt(1, 64, (4, 16)), 0), first);
    assert_eq!(router.send("", &prompt(1, 64, (5, 16)), 0), first);
    // Four requests more than on the emptiest worker, and more than 1.1 times as many.
    assert_eq!(router.workers.extremes(), (1, 4));
    assert_eq!(router.send("", &prompt(1, 64, (6, 16)), 0), first);
    assert_ne!(router.send("", &prompt(1, 64, (7, 16)), 0), first);
    let numbers: Vec<f64> = router.policy.numbers().into_iter().map(|(_, n)| n).collect();
    assert_eq!(numbers, [4.0, 1.0, 3.0]);
}

#[test]
fn a_clients_credit_keeps_its_prompts_together_until_it_is_used_up() {
    let mut router = Router::new("d2lpm:quantum=300", &[1.0; 2]);
    let to: Vec<usize> = (0..8).map(|own| router.send("a", &prompt(1, 96, (own, 4)), 0)).collect();
    // Three prompts of 100 tokens use up the credit at a worker. When there is none left, both have the prompt, and the emptier
    // one gets it.
    assert_eq!(to, [0, 0, 0, 1, 1, 1, 0, 1]);
    assert_eq!(router.send("b", &prompt(1, 96, (9, 4)), 0), 0, "it has credit at both");
    // Generated tokens cost twice as much, at the end.
    let mut router = Router::new("d2lpm:quantum=300", &[1.0; 2]);
    router.send("a", &prompt(1, 96, (0, 4)), 0);
    router.end(0, 1, 2);
    let to: Vec<usize> = (1..4).map(|own| router.send("a", &prompt(1, 96, (own, 4)), 3)).collect();
    assert_eq!(to, [0, 0, 1], "22 and 100 are gone");
}

#[test]
fn a_dropped_prompt_attracts_no_request() {
    let policies = ["d2lpm", "preble:balance=1000,decode=1000000000"];
    for (policy, (kept, expected)) in
        policies.into_iter().flat_map(|policy| [(policy, (96, 0)), (policy, (8, 1))])
    {
        let mut router = Router::new(policy, &[1.0; 2]);
        let text = prompt(1, 96, (0, 0));
        // The first worker has the text and something to do, and the second one has less.
        assert_eq!(router.send("a", &text, 0), 0, "{policy}");
        router.end(0, 1, 2);
        router.workers.on_sent(WorkerId(0), 0);
        if policy != "d2lpm" {
            // Without any load, it would be out of balance with all others.
            assert_eq!(router.send("a", &prompt(9, 16, (0, 0)), 2), 1, "{policy}");
            router.end(1, 3, 3);
        }
        assert!(router.policy.hears_evictions());
        router.policy.evicted(WorkerId(0), &text, kept);
        let more = prompt(1, 96, (1, 16));
        assert_eq!(router.send("a", &more, 3), expected, "{policy}, {kept} tokens");
    }
}

#[test]
fn a_dropped_prompt_is_work_again() {
    for (kept, expected) in [(96, 0), (8, 1)] {
        let mut router = Router::new("min-makespan:output=0", &[1.0, 0.9]);
        let text = prompt(1, 96, (0, 0));
        assert_eq!(router.send("", &text, 0), 0, "the faster one");
        router.end(0, 1, 2);
        assert_eq!(router.send("", &prompt(2, 0, (1, 16)), 3), 0);
        router.policy.evicted(WorkerId(0), &text, kept);
        // 16 and 16 or 112 tokens, or 112 at 0.9 of the speed.
        assert_eq!(router.send("", &prompt(1, 96, (2, 16)), 4), expected, "{kept} tokens");
    }
}

/// The least time in which workers of these speeds can do all jobs.
fn optimum(jobs: &[usize], ends: &mut Vec<f64>, speeds: &[f64]) -> f64 {
    let Some((job, rest)) = jobs.split_first() else {
        return ends.iter().copied().fold(0.0, f64::max);
    };
    let mut best = f64::INFINITY;
    for worker in 0..speeds.len() {
        let time = *job as f64 / speeds[worker];
        ends[worker] += time;
        best = best.min(optimum(rest, ends, speeds));
        ends[worker] -= time;
    }
    best
}

proptest! {
    #[test]
    fn list_scheduling_takes_at_most_twice_the_least_time(
        jobs in prop::collection::vec(1_usize..200, 1..8),
        count in 1_usize..4,
    ) {
        let speeds = vec![1.0; count];
        let mut router = Router::new("min-makespan:output=0", &speeds);
        let mut ends = vec![0.0; count];
        for (number, job) in jobs.iter().enumerate() {
            let worker = router.send("", &prompt(number as u32, 0, (number as u32, *job)), 0);
            ends[worker] += *job as f64;
        }
        let found = ends.iter().copied().fold(0.0, f64::max);
        let best = optimum(&jobs, &mut vec![0.0; count], &speeds);
        prop_assert!(found <= (2.0 - 1.0 / count as f64) * best + 1e-9, "{found} for {best}");
    }

    #[test]
    fn round_robin_sends_equally_many_and_least_load_leaves_no_worker_idle(
        steps in prop::collection::vec(any::<bool>(), 1..80),
        count in 1_usize..6,
    ) {
        for policy in ["round-robin", "least-load"] {
            let mut router = Router::new(policy, &vec![1.0; count]);
            let mut open = std::collections::VecDeque::new();
            for (at, ends) in steps.iter().enumerate() {
                if let (true, Some(number)) = (*ends, open.pop_front()) {
                    router.end(number, at as u64, at as u64);
                    continue;
                }
                let idle = router.workers.ids().any(|it| router.workers.load(it).in_flight() == 0);
                let worker = router.send("", &[at as u32], at as u64);
                open.push_back(router.sent.len() - 1);
                if policy == "least-load" && idle {
                    let load = router.workers.load(WorkerId(worker as u32));
                    prop_assert_eq!(load.in_flight(), 1);
                }
                let sent: Vec<u64> =
                    router.workers.ids().map(|it| router.workers.load(it).sent).collect();
                let (least, most) = (sent.iter().min().copied(), sent.iter().max().copied());
                if policy == "round-robin" {
                    prop_assert!(most <= least.map(|least| least + 1));
                }
            }
        }
    }
}

#[test]
fn a_fast_worker_gets_as_much_more_as_it_is_faster() {
    let mut router = Router::new("min-makespan", &[1.0, 1.0, 0.5]);
    let mut sent = [0; 3];
    for number in 0..50 {
        sent[router.send("", &prompt(number, 0, (number, 100)), 0)] += 1;
    }
    assert_eq!(sent, [20, 20, 10]);
}

#[test]
fn a_prompt_follows_what_an_index_of_caches_says() {
    for policy in ["preble", "d2lpm", "min-makespan"] {
        let mut router = Router::new(policy, &[1.0; 3]);
        let ids = prompt(1, 640, (1, 16));
        router.policy.cached(WorkerId(2), &ids[..640], &router.workers, Nanos(1));
        assert_eq!(router.send("a", &ids, 2), 2, "{policy}");
        // Without it, all workers are equal, and the first one is chosen.
        let other = prompt(2, 640, (2, 16));
        router.policy.cached(WorkerId(2), &other[..640], &router.workers, Nanos(3));
        router.policy.evicted(WorkerId(2), &other, 0);
        assert_ne!(router.send("b", &other, 4), 2, "{policy}");
    }
}
