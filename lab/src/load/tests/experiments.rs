use std::collections::{BTreeMap, HashSet};

use lapwing_actors::policy::PolicyChoice;

use super::approx;
use crate::load::*;

#[test]
fn every_experiment_is_known_and_serves_its_requests() {
    for (name, about) in Experiment::ALL {
        let mut experiment = Experiment::named(name, Experiment::SEED).expect(name);
        assert_eq!((experiment.name, experiment.about), (name, about));
        assert!(experiment.requests.len() >= 100, "{name}: {}", experiment.requests.len());
        let clients = experiment.requests.iter().map(|request| &request.client);
        assert!(clients.collect::<HashSet<_>>().len() <= 27, "{name}");
        // The beginning shows that the requests fit the server.
        experiment.requests.truncate(12);
        let policy = experiment.policy(&PolicyChoice::from("fcfs"));
        let (served, stats) =
            experiment.server.run(&experiment.requests, &policy, None).expect(name);
        assert!(served.iter().all(|request| request.finished), "{name}");
        assert_eq!((stats.all.finished, stats.running + stats.waiting), (12, 0), "{name}");
    }
    let error = Experiment::named("vtc", 1).expect_err("none").to_string();
    assert!(error.contains("one of vtc-overload, "), "{error}");
}

#[test]
fn an_experiment_has_the_published_number_of_requests() {
    let rows = [
        ("vtc-overload", vec![540, 1080], 362.0),
        ("vtc-overload-600", vec![900, 1800], 602.0),
        ("vtc-8-clients", vec![144, 144, 144, 216, 216, 216, 216, 216], 366.0),
        ("vtc-proportional", vec![150, 300, 900], 606.0),
        ("vtc-4-clients", vec![288, 288, 432, 576], 363.0),
        ("vtc-on-off", vec![150, 1200], 602.0),
        ("vtc-on-off-overload", vec![600, 1800], 602.0),
        ("vtc-ramp", vec![300, 660], 610.0),
        ("vtc-shift", vec![90 + 300 + 150, 600 + 300 + 450], 904.0),
        ("dlpm", vec![800, 100, 100], 98.5),
    ];
    for (name, counts, end) in rows {
        let requests = Experiment::named(name, Experiment::SEED).expect(name).requests;
        let mut found = BTreeMap::<&str, usize>::new();
        for request in &requests {
            *found.entry(&request.client).or_default() += 1;
        }
        for (found, count) in found.into_values().zip(counts) {
            // A pause may have one arrival more or less.
            assert!(found.abs_diff(count) <= 1 + count / 100, "{name}: {found} for {count}");
        }
        let last = requests.last().expect("requests").at;
        assert!((end - 12.0..end).contains(&last), "{name}: {last}");
    }
    let first = &Experiment::named("vtc-overload", Experiment::SEED).expect("known").requests[0];
    assert!(approx(first.at, (1.0 + 0.950_714_306_409_916_2) / 3.0) && first.client == "client 2");
    let long = Experiment::named("vtc-short-long", Experiment::SEED).expect("known").requests;
    let long = long.iter().filter(|request| request.client == "long").count();
    assert!(long.abs_diff(900) < 5 * 30, "{long} of 5700");
}

#[test]
fn an_experiment_has_parameters_of_policies_that_a_choice_replaces() {
    let experiment = Experiment::named("vtc-4-clients", Experiment::SEED).expect("known");
    let name = |choice: &str| experiment.policy(&PolicyChoice::from(choice)).name().to_owned();
    assert_eq!(name("fcfs"), "fcfs");
    assert!(name("vtc").starts_with("vtc:weight.client 1=1,"), "{}", name("vtc"));
    assert!(name("vtc:output=3").ends_with(",output=3"));
    for choice in ["vtc", "dlpm", "vtc:weight.client 1=5"] {
        assert!(experiment.policy(&PolicyChoice::from(choice)).make().is_ok(), "{choice}");
    }
}

#[test]
fn the_same_seed_gives_the_same_run_and_shared_prefixes_save_time() {
    let mut experiment = Experiment::named("preble-toolbench", 3).expect("known");
    experiment.requests.truncate(60);
    let policy = PolicyChoice::from("fcfs");
    let run = |server: &Server| server.run(&experiment.requests, &policy, None).expect("served").0;
    let with = run(&experiment.server);
    assert_eq!(with, run(&experiment.server));
    let without = run(&Server { prefix_cache: false, ..experiment.server.clone() });
    let hits = |served: &[RequestOutcome]| served.iter().filter(|r| r.cached_tokens > 0).count();
    assert!(hits(&with) > 10 && hits(&without) == 0);
    let total =
        |served: &[RequestOutcome]| -> f64 { served.iter().filter_map(RequestOutcome::ttft).sum() };
    assert!(total(&with) < total(&without));
}

/// The time of the host is pinned by this number alone (docs/load.md).
#[test]
fn fcfs_has_the_published_throughput_below_overload() {
    let experiment = Experiment::named("vtc-on-off", Experiment::SEED).expect("known");
    let policy = PolicyChoice::from("fcfs");
    let run = experiment.server.run(&experiment.requests, &policy, None).expect("served");
    let report = LoadReport::new("fcfs", &run.0, &run.1, &experiment.measure);
    let found = report.tokens_per_second;
    assert!((found - 875.0).abs() < 0.5, "{found} tokens/s for 875");
}
