use lapwing_actors::policy::PolicyChoice;
use lapwing_actors::stats::EngineStats;

use super::*;

fn approx(found: f64, expected: f64) -> bool {
    (found - expected).abs() < 1e-9
}

#[test]
fn a_line_that_is_no_request_is_named() {
    let good = r#"{"at":0.5,"client":"a","prompt_tokens":4,"output_tokens":2,"prefix":[["s",3]]}"#;
    let rows = [
        ("{", "line 2 is not a request: EOF"),
        (r#"{"at":0}"#, "missing field `prompt_tokens`"),
        (r#"{"at":-1,"prompt_tokens":4,"output_tokens":2}"#, "at is -1"),
        (r#"{"at":0,"prompt_tokens":0,"output_tokens":2}"#, "at least 1 token"),
        (r#"{"at":0,"prompt_tokens":4,"output_tokens":0}"#, "output_tokens must be at least 1"),
        (
            r#"{"at":0,"prompt_tokens":4,"output_tokens":2,"prefix":[["s",5]]}"#,
            "prefix has 5 tokens",
        ),
        (r#"{"at":0,"prompt_tokens":4,"output_tokens":2,"color":1}"#, "unknown field `color`"),
    ];
    for (bad, message) in rows {
        let text = format!("{good}\n{bad}\n");
        let error = Trace::read(text.as_bytes()).expect_err(bad).to_string();
        assert!(error.contains(message), "{bad}: {error}");
    }
}

#[test]
fn requests_are_sorted_and_come_back_as_they_were_written() {
    let client = LoadClient::new("a", Rate::Constant(3.0), 20, 5).sharing(SharedPrefixes {
        name: "s".to_owned(),
        count: 2,
        tokens: 8,
        zipf: 1.0,
    });
    let requests = generate(&[client], 20.0, 1);
    assert!(requests.len() > 30 && requests.is_sorted_by(|one, other| one.at <= other.at));
    let lines: Vec<String> =
        requests.iter().rev().map(|r| serde_json::to_string(r).expect("JSON")).collect();
    let mut read = Trace::read(lines.join("\n").as_bytes()).expect("requests").requests;
    for (read, request) in read.iter_mut().zip(&requests) {
        assert!(approx(read.at, request.at), "numbers are read with an error of one unit at most");
        read.at = request.at;
    }
    assert_eq!(read, requests);
}

#[test]
fn prompts_of_the_same_prefix_begin_alike_and_differ_after_it() {
    let request = |prefix: &[(&str, usize)]| LoadRequest {
        prefix: prefix.iter().map(|(name, tokens)| ((*name).to_owned(), *tokens)).collect(),
        ..LoadRequest::new(0.0, "", 40, 1)
    };
    let ids = |prefix: &[(&str, usize)], number| request(prefix).ids(number, &(100..30_000));
    let (a, b) = (ids(&[("s", 20), ("t", 10)], 1), ids(&[("s", 20), ("u", 10)], 2));
    assert!(a.len() == 40 && a.iter().all(|id| (100..30_000).contains(id)));
    assert_eq!(a[..20], b[..20]);
    assert!(a[20..].iter().zip(&b[20..]).filter(|(a, b)| a == b).count() < 3);
    assert_ne!(ids(&[], 1), ids(&[], 2));
}

#[test]
fn arrivals_follow_the_rate() {
    let count = |rate: Rate, from: f64, to: f64| {
        let requests = generate(&[LoadClient::new("a", rate, 1, 1)], 1000.0, 7);
        requests.iter().filter(|request| (from..to).contains(&request.at)).count() as f64
    };
    let on_off = Rate::OnOff { rate: 4.0, on: 10.0, off: 90.0 };
    let ramp = Rate::Ramp { from: 0.0, to: 8.0 };
    let steps = Rate::Steps(vec![1.0, 5.0]);
    let rows = [
        (Rate::Constant(2.0), 0.0, 1000.0, 2000.0),
        (on_off.clone(), 0.0, 1000.0, 400.0),
        (on_off, 10.0, 100.0, 0.0),
        (ramp.clone(), 0.0, 500.0, 1000.0),
        (ramp, 500.0, 1000.0, 3000.0),
        (steps.clone(), 0.0, 500.0, 500.0),
        (steps, 500.0, 1000.0, 2500.0),
        (Rate::Constant(0.0), 0.0, 1000.0, 0.0),
    ];
    for (rate, from, to, expected) in rows {
        let found = count(rate.clone(), from, to);
        // Five standard deviations of a Poisson count.
        assert!((found - expected).abs() <= 5.0 * expected.sqrt(), "{rate:?} {from}: {found}");
    }
}

#[test]
fn a_turn_begins_with_the_turns_before_it() {
    let shared = SharedPrefixes { name: "s".to_owned(), count: 1, tokens: 30, zipf: 0.0 };
    let client = LoadClient::new("a", Rate::Constant(0.1), 40, 5);
    let requests = generate(&[client.sharing(shared).talking(3, 2.0)], 1000.0, 3);
    let ids = |at: usize| requests[at].ids(at, &(0..30_000));
    let second = requests.iter().position(|r| r.prompt_tokens == 55).expect("a second turn");
    let (third, _) = (requests.iter().enumerate().skip(second + 1))
        .find(|(at, r)| r.prompt_tokens == 70 && ids(*at).starts_with(&ids(second)))
        .expect("a third turn begins with the second one");
    let first = (0..second).find(|at| ids(second).starts_with(&ids(*at))).expect("a first turn");
    assert_eq!((ids(first).len(), ids(third).len()), (40, 70));
    let other = (0..requests.len()).find(|at| *at != first && requests[*at].prompt_tokens == 40);
    let other = ids(other.expect("another conversation"));
    assert!(other[..30] == ids(first)[..30] && other[30..] != ids(first)[30..]);
    let count = |tokens| requests.iter().filter(|r| r.prompt_tokens == tokens).count();
    assert!(count(40) >= count(55) && count(55) >= count(70), "turns after the end are left out");
    assert!(count(70) > 50 && requests.iter().all(|r| r.at < 1000.0));
}

/// Requests of two clients: `a` has all of its tokens, `b` only its first.
fn outcomes() -> Vec<RequestOutcome> {
    let request = |client: &str, tokens: &[f64], finished| RequestOutcome {
        client: client.to_owned(),
        prompt_tokens: 10,
        output_tokens: 3,
        cached_tokens: if finished { 5 } else { 0 },
        tokens: tokens.to_vec(),
        finished,
        ..RequestOutcome::default()
    };
    vec![request("a", &[1.0, 2.0, 4.0], true), request("b", &[9.0], false)]
}

fn stats() -> EngineStats {
    let mut stats = EngineStats::default();
    (stats.all.preempted, stats.all.recomputed_rows) = (3, 40);
    stats.policy_numbers = vec![("counter a".to_owned(), 16.0)];
    stats
}

#[test]
fn a_report_counts_service_latencies_and_differences() {
    let measure = Measure { window: 5.0, ticks: 2, ..Measure::default() };
    let report = LoadReport::new("fcfs", &outcomes(), &stats(), 10.0, &measure);
    assert_eq!((report.requests, report.finished, report.aborted), (2, 1, 0));
    let services: Vec<f64> = report.clients.iter().map(|client| client.service).collect();
    assert_eq!(services, [10.0 + 2.0 * 3.0, 10.0 + 2.0]);
    assert!(approx(report.accumulated_difference, 4.0));
    assert!(approx(report.jain_index, 28.0 * 28.0 / (2.0 * (16.0 * 16.0 + 12.0 * 12.0))));
    assert!(approx(report.hit_rate, 0.5));
    assert!(
        approx(report.tokens_per_second, 2.4) && approx(report.generated_tokens_per_second, 0.4)
    );
    assert_eq!((report.preemptions, report.recomputed_rows), (3, 40));
    assert_eq!(report.policy_numbers["counter a"], 16.0);
    assert_eq!(report.window_s, [2.5, 7.5]);
    assert_eq!(report.clients[0].service_in_window, [16.0, 0.0]);
    assert_eq!(report.clients[1].service_in_window, [0.0, 12.0]);
    assert_eq!(report.difference_in_window, [16.0, 0.0]);
    // First b got 16 less and asked for 16; then a got 12 less but asked for nothing more.
    let difference = report.service_difference;
    assert!(approx(difference.max, 16.0) && approx(difference.mean, 8.0));
    assert!(approx(difference.variance, 64.0));
    let latencies = &report.clients[0].latencies;
    assert_eq!(latencies.ttft_ms.p50, Some(1000.0));
    assert_eq!(latencies.tpot_ms.p50, Some(1500.0));
    assert_eq!((latencies.itl_ms.min, latencies.itl_ms.max), (Some(1000.0), Some(2000.0)));
    assert_eq!(latencies.response_ms.p50, Some(4000.0));
    let page = page("two <clients>", "in virtual time", &[report]);
    for part in
        ["Load: two &lt;clients&gt;", "2 requests", "Service of clients: fcfs", "Response time"]
    {
        assert!(page.contains(part), "{part}: {page}");
    }
    let nothing = LoadReport::new("fcfs", &[], &EngineStats::default(), 0.0, &measure);
    assert!(nothing.jain_index == 1.0 && nothing.tokens_per_second == 0.0);
}

#[test]
fn every_experiment_is_known_and_serves_its_requests() {
    let policy = PolicyChoice::from("fcfs");
    for (name, about) in Experiment::ALL {
        let mut experiment = Experiment::named(name, 1).expect(name);
        assert_eq!((experiment.name, experiment.about), (name, about));
        assert!(experiment.requests.len() >= 100, "{name}: {}", experiment.requests.len());
        let clients = experiment.requests.iter().map(|request| &request.client);
        assert!(clients.collect::<std::collections::HashSet<_>>().len() <= 27, "{name}");
        // The beginning shows that the requests fit the server.
        experiment.requests.truncate(12);
        let (served, stats) =
            experiment.server.run(&experiment.requests, &policy, None).expect(name);
        assert!(served.iter().all(|request| request.finished), "{name}");
        assert_eq!((stats.all.finished, stats.running + stats.waiting), (12, 0), "{name}");
    }
    let error = Experiment::named("vtc", 1).expect_err("none").to_string();
    assert!(error.contains("one of vtc-overload, "), "{error}");
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
