use lapwing_actors::routing::known;

use super::*;
use crate::load::cost::PassTime;
use crate::load::report::{LoadReport, Measure};
use crate::load::{LoadClient, Rate, ServerOptions, SharedPrefixes, generate};

/// 1 ms for each prompt row, 10 ms for each step, and nothing else.
fn server() -> Server {
    Server {
        time: PassTime::Linear { prompt: 1e-3, step: 1e-2, row: 0.0, context: 0.0 },
        kv_tokens: 20_000,
        chunk_rows: 512,
        sequences_max: 16,
        prefix_cache: true,
        token_gap: None,
        options: ServerOptions::default(),
    }
}

fn prefixes(count: usize, tokens: usize) -> SharedPrefixes {
    SharedPrefixes { name: "text".to_owned(), count, tokens, zipf: 0.0 }
}

/// Two clients whose prompts share a hundred tokens.
fn workload(rate: f64, seed: u64) -> Vec<LoadRequest> {
    let client =
        |name| LoadClient::new(name, Rate::Constant(rate), 150, 20).sharing(prefixes(6, 100));
    generate(&[client("a"), client("b")], 20.0, seed)
}

fn run(workers: &Workers, route: &str, requests: &[LoadRequest]) -> Routed {
    let policies = (&RouteChoice::from(route), &PolicyChoice::default());
    workers.run(requests, policies, None).expect("served")
}

#[test]
fn a_worker_alone_has_the_report_of_the_server() {
    let (requests, measure) = (workload(4.0, 1), Measure::default());
    for until in [None, Some(7.0)] {
        for policy in ["fcfs", "vtc", "preble"] {
            let policy = PolicyChoice::from(policy);
            let (served, stats) = server().run(&requests, &policy, until).expect("served");
            let alone = LoadReport::new(policy.name(), &served, &stats, &measure);
            for route in known() {
                let workers = Workers::equal(server(), 1);
                let route = RouteChoice::from(route.name());
                let routed = workers.run(&requests, (&route, &policy), until).expect("served");
                let names = (route.name(), policy.name());
                let report = WorkersReport::new(&workers, names, &routed, &measure);
                assert_eq!(report.all, alone, "{names:?} until {until:?}");
                assert_eq!((report.imbalance.busy, report.workers.len()), (1.0, 1));
                assert_eq!(report.decision_us.count, 0);
            }
        }
    }
}

#[test]
fn disjoint_prefixes_are_hit_at_least_as_often_where_they_are_cached_as_in_turn() {
    for seed in 0..12 {
        let requests = workload(2.0 + seed as f64, seed);
        for count in [2, 3, 5] {
            let workers = Workers::equal(server(), count);
            let hits = |route| {
                let served = run(&workers, route, &requests).requests;
                served.iter().map(|request| request.cached_tokens).sum::<usize>()
            };
            let (aware, turns) = (hits("cache-aware"), hits("round-robin"));
            assert!(aware >= turns, "{aware} < {turns} with {count} workers, seed {seed}");
        }
    }
}

#[test]
fn a_worker_of_half_the_speed_takes_twice_the_time() {
    let one = [LoadRequest::new(0.0, "a", 100, 3)];
    for (speed, first, last) in [(1.0, 0.1, 0.12), (0.5, 0.2, 0.24), (2.0, 0.05, 0.06)] {
        let workers = Workers { speeds: vec![speed], ..Workers::equal(server(), 1) };
        let routed = run(&workers, "least-load", &one);
        let tokens = &routed.requests[0].tokens;
        assert!((tokens[0] - first).abs() < 1e-9 && (tokens[2] - last).abs() < 1e-9, "{tokens:?}");
    }
    let uneven = Workers { speeds: vec![1.0, 1.0, 0.25], ..Workers::equal(server(), 3) };
    let requests = workload(6.0, 3);
    let mean = |route| {
        let served = run(&uneven, route, &requests).requests;
        served.iter().filter_map(RequestOutcome::response).sum::<f64>() / served.len() as f64
    };
    assert!(mean("min-makespan") < mean("round-robin"));
}

#[test]
fn a_worker_with_costs_of_its_own_takes_their_time_and_gets_what_it_can_do() {
    // Prompts take four times as long on the last one, and steps do not.
    let slow = PassTime::Linear { prompt: 4e-3, step: 1e-2, row: 0.0, context: 0.0 };
    let costs = [(2, slow)].into();
    let workers = Workers { costs, ..Workers::equal(server(), 3) };
    let three: Vec<LoadRequest> =
        (0..3).map(|at| LoadRequest::new(f64::from(at), "a", 100, 3)).collect();
    let routed = run(&workers, "round-robin", &three);
    let times: Vec<(f64, f64)> = routed
        .requests
        .iter()
        .map(|it| (it.tokens[0] - it.at, it.tokens[2] - it.tokens[0]))
        .collect();
    for ((first, steps), expected) in times.iter().zip([0.1, 0.1, 0.4]) {
        assert!((first - expected).abs() < 1e-9 && (steps - 0.02).abs() < 1e-9, "{times:?}");
    }
    let requests = workload(6.0, 3);
    let routed = |route| run(&workers, route, &requests);
    let (balanced, turns) = (routed("min-makespan"), routed("round-robin"));
    let mean = |routed: &Routed| {
        let responses = routed.requests.iter().filter_map(RequestOutcome::response);
        responses.sum::<f64>() / routed.requests.len() as f64
    };
    assert!(mean(&balanced) < mean(&turns));
    assert!(balanced.outcomes[2].sent < balanced.outcomes[0].sent);
    let beyond = Workers { costs: [(3, slow)].into(), ..workers.clone() };
    let policies = (&RouteChoice::default(), &PolicyChoice::default());
    let error = beyond.run(&[], policies, None).expect_err("there are three").to_string();
    assert!(error.contains("worker 3 has costs of its own, but there are 3"), "{error}");
}

#[test]
fn impossible_workers_are_refused() {
    for (speeds, message) in [
        (vec![], "at least one worker"),
        (vec![1.0, 0.0], "the speed of a worker is 0"),
        (vec![f64::NAN], "the speed of a worker is NaN"),
    ] {
        let workers = Workers { speeds, ..Workers::equal(server(), 1) };
        let policies = (&RouteChoice::default(), &PolicyChoice::default());
        let error = workers.run(&[], policies, None).expect_err(message).to_string();
        assert!(error.contains(message), "{error}");
    }
    let workers = Workers::equal(server(), 2);
    let unknown = (&RouteChoice::from("best"), &PolicyChoice::default());
    assert!(workers.run(&[], unknown, None).is_err());
}

#[test]
fn a_repeated_experiment_has_as_many_requests_more_and_the_same_prefixes() {
    let one = repeated("preble-toolbench", 1, 1).expect("an experiment");
    let three = repeated("preble-toolbench", 1, 3).expect("an experiment");
    let ratio = three.requests.len() as f64 / one.requests.len() as f64;
    assert!((2.8..3.2).contains(&ratio), "{ratio}");
    let names = |requests: &[LoadRequest]| {
        let names = requests.iter().flat_map(|request| request.prefix.clone());
        names.collect::<std::collections::BTreeSet<_>>()
    };
    let shared = names(&one.requests).intersection(&names(&three.requests)).count();
    assert_eq!(shared, names(&one.requests).len());
    assert!(three.requests.is_sorted_by(|one, other| one.at <= other.at));
}
