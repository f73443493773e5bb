use std::sync::Arc;
use std::time::Duration;

use lapwing_plan::time::FixedRate;
use proptest::prelude::*;

use super::*;
use crate::policy::Fcfs;
use crate::routing::{LeastLoad, PrefillTime, RoundRobin, by_name};
use crate::scheduler::{Batches, Reserve};
use crate::simulate::arrival::Served;

const MS: u64 = 1_000_000;

/// 1 ms for each pass and each row.
fn serving(kv_tokens: usize) -> Serving {
    let per_stage = Duration::from_millis(1);
    Serving {
        time: Arc::new(FixedRate { per_stage, per_row: per_stage }),
        kv_tokens,
        page_rows: 1,
        chunk_rows: 64,
        sequences_max: 8,
        prefix_cache: true,
        token_gap: None,
        reserve: Reserve::Prompt,
        batches: Batches::default(),
        policy: Box::new(Fcfs),
    }
}

fn spec(kv_tokens: usize) -> WorkerSpec {
    let prefill = PrefillTime { constant: 1e-3, row: 1e-3, ..PrefillTime::default() };
    WorkerSpec { speed: 1.0, kv_tokens, prefill }
}

fn run(
    count: usize,
    kv_tokens: usize,
    policy: Box<dyn RoutePolicy>,
    arrivals: &[Arrival],
    until: Option<Nanos>,
) -> (Vec<Vec<WorkerServed>>, WorkersOutcome) {
    let mut served = vec![Vec::new(); arrivals.len()];
    let mut make = |_| Ok(serving(kv_tokens));
    let workers = VirtualWorkers::new(WorkersParts {
        specs: vec![spec(kv_tokens); count],
        make: &mut make,
        policy,
        context: 400,
        clock: None,
    });
    let outcome = workers.run(arrivals.iter().cloned(), until, &mut |number, it| {
        served[number].push(it);
    });
    (served, outcome.expect("served"))
}

/// Requests of prompts that begin with one of four texts, in order of arrival.
fn arrivals() -> impl Strategy<Value = Vec<Arrival>> {
    let arrival = (0_u64..30, 0_u32..4, 1_usize..60, 1_u32..40, 1_usize..12);
    prop::collection::vec(arrival, 1..25).prop_map(|drawn| {
        let mut at = 0;
        let drawn = drawn.into_iter().enumerate();
        let arrivals = drawn.map(|(number, (after, text, shared, own, tokens))| {
            // Several arrive at the same time.
            at += after / 2 * MS;
            let shared = (0..shared as u32).map(|it| text * 1000 + it);
            let own = (0..own).map(|it| 100_000 + number as u32 * 100 + it);
            let client = ["a", "b"][number % 2].into();
            Arrival { client, ..Arrival::new(Nanos(at), shared.chain(own).collect(), tokens) }
        });
        arrivals.collect()
    })
}

fn all_policies() -> impl Iterator<Item = Box<dyn RoutePolicy>> {
    crate::routing::known().iter().map(|known| by_name(known.name()).expect("is known"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn a_worker_alone_is_the_server(
        arrivals in arrivals(),
        kv_tokens in 100_usize..400,
        until in prop::option::of(1_u64..300),
    ) {
        let until = until.map(|ms| Nanos(ms * MS));
        // The set-up of a server alone has a limit of its own for requests.
        let alone = serving(kv_tokens).run(&arrivals, until);
        let (alone, stats) = alone.expect("served");
        for policy in all_policies() {
            let name = policy.name().to_owned();
            let (served, outcome) = run(1, kv_tokens, policy, &arrivals, until);
            for (alone, served) in alone.iter().zip(&served) {
                let Served { tokens, times, failed, .. } = alone;
                let Some(one) = served.first() else {
                    prop_assert!(tokens.is_empty() && times.is_none() && until.is_some(), "{}", name);
                    continue;
                };
                prop_assert_eq!((&one.tokens, &one.times), (tokens, times), "{}", name);
                prop_assert_eq!(one.failed.as_ref(), failed.as_ref().map(|it| &it.error));
            }
            prop_assert_eq!(&outcome.workers[0].stats, &stats, "{}", name);
        }
    }

    #[test]
    fn each_request_is_served_once_by_one_worker_and_in_the_same_way_again(
        arrivals in arrivals(),
        count in 1_usize..5,
    ) {
        for policy in all_policies() {
            let name = policy.name().to_owned();
            let (served, outcome) = run(count, 300, policy, &arrivals, None);
            for (arrival, served) in arrivals.iter().zip(&served) {
                prop_assert_eq!(served.len(), 1, "{}", &name);
                prop_assert_eq!(served[0].tokens.len(), arrival.tokens, "{}", &name);
                prop_assert!(served[0].worker.index() < count && served[0].times.is_some());
            }
            let sent: u64 = outcome.workers.iter().map(|worker| worker.sent).sum();
            let finished: usize = outcome.workers.iter().map(|it| it.stats.all.finished).sum();
            prop_assert_eq!((sent as usize, finished), (arrivals.len(), arrivals.len()));
            let again = run(count, 300, by_name(&name).expect("is known"), &arrivals, None);
            prop_assert_eq!(again, (served, outcome), "{}", name);
        }
    }

    #[test]
    fn round_robin_sends_equally_many(arrivals in arrivals(), count in 1_usize..5) {
        let (_, outcome) = run(count, 300, Box::new(RoundRobin::default()), &arrivals, None);
        let sent = outcome.workers.iter().map(|worker| worker.sent);
        prop_assert!(sent.clone().max() <= sent.min().map(|least| least + 1));
    }
}

#[test]
fn workers_compute_at_the_same_time_and_one_without_requests_not_at_all() {
    let two = [0, 1].map(|text| Arrival::new(Nanos(5 * MS), vec![text; 10], 3));
    let (served, outcome) = run(3, 300, Box::new(LeastLoad), &two, None);
    // A pass of 10 rows, then two of one row, on each.
    let ends = [16, 18, 20].map(|ms| Nanos(ms * MS));
    assert!(served.iter().all(|served| served[0].tokens == ends), "{served:?}");
    let busy: Vec<Duration> = outcome.workers.iter().map(|worker| worker.busy).collect();
    assert_eq!(busy, [15, 15, 0].map(Duration::from_millis));
    assert_eq!(outcome.workers[2], WorkerOutcome::default());
}

/// Names a worker that is not there.
struct Nowhere;

impl RoutePolicy for Nowhere {
    fn name(&self) -> &str {
        "nowhere"
    }

    fn route(&mut self, _request: &Incoming<'_>, workers: &Workers, _now: Nanos) -> WorkerId {
        WorkerId(workers.count() as u32)
    }
}

#[test]
fn a_worker_that_is_not_there_is_named() {
    let mut make = |_| Ok(serving(100));
    let workers = VirtualWorkers::new(WorkersParts {
        specs: vec![spec(100); 2],
        make: &mut make,
        policy: Box::new(Nowhere),
        context: 100,
        clock: None,
    });
    let one = [Arrival::new(Nanos(0), vec![1], 1)];
    let error = workers.run(one.into_iter(), None, &mut |_, _| {}).expect_err("no such worker");
    assert!(error.to_string().contains("nowhere named worker 2 of 2"), "{error}");
}

/// Texts that caches have dropped, and how many of their tokens are kept.
type Dropped = Arc<std::sync::Mutex<Vec<(Vec<u32>, usize)>>>;

/// Hears what caches drop.
#[derive(Default)]
struct Listener(Dropped);

impl RoutePolicy for Listener {
    fn name(&self) -> &str {
        "listener"
    }

    fn route(&mut self, _request: &Incoming<'_>, _workers: &Workers, _now: Nanos) -> WorkerId {
        WorkerId(0)
    }

    fn hears_evictions(&self) -> bool {
        true
    }

    fn evicted(&mut self, worker: WorkerId, text: &[u32], kept: usize) {
        assert_eq!(worker, WorkerId(0));
        self.0.lock().expect("no panic").push((text.to_vec(), kept));
    }
}

#[test]
fn the_router_hears_what_a_cache_has_dropped() {
    let heard = Arc::default();
    // The cache has room for one prompt and a half.
    let arrivals: Vec<Arrival> = (0..3)
        .map(|number| {
            let ids = (0..80).map(|it| number * 1000 + it).collect();
            Arrival::new(Nanos(u64::from(number) * 1000 * MS), ids, 2)
        })
        .collect();
    let (served, _) = run(1, 120, Box::new(Listener(Arc::clone(&heard))), &arrivals, None);
    assert!(served.iter().all(|served| served[0].times.is_some()));
    let heard = heard.lock().expect("no panic");
    for (number, arrival) in arrivals[..2].iter().enumerate() {
        let of_it = heard.iter().filter(|(text, _)| text.starts_with(&arrival.ids[..16]));
        let kept = of_it.map(|(_, kept)| *kept).min();
        assert!(kept.is_some_and(|kept| kept < 48), "{number}: {kept:?}");
    }
}
