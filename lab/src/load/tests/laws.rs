//! What holds for every workload, policy and server.

use std::time::Duration;

use lapwing_actors::policy::{PolicyChoice, known};
use lapwing_actors::scheduler::{Batches, Reserve};

use super::approx;
use crate::load::random::Random;
use crate::load::*;

/// A random server, with a cache for a few of the requests below.
fn server(random: &mut Random) -> Server {
    let mut below = |limit: f64| (random.unit() * limit) as usize;
    let batches = Batches {
        alone: below(2.0) == 0,
        prompt_tokens: (below(2.0) == 0).then(|| 100 + below(400.0)),
        steps: below(3.0) * below(8.0),
    };
    Server {
        time: PassTime::Linear { prompt: 2e-4, step: 0.02, row: 5e-4, context: 2e-6 },
        kv_tokens: 300 + below(900.0),
        chunk_rows: 64 + below(600.0),
        sequences_max: 1 + below(40.0),
        prefix_cache: below(2.0) == 0,
        token_gap: None,
        options: ServerOptions {
            host: Duration::from_millis(below(9.0) as u64),
            batches,
            ..ServerOptions::default()
        },
    }
}

/// Random requests of three clients; some begin alike. With `spread` 0 all arrive at the start.
fn requests(random: &mut Random, spread: f64) -> Vec<LoadRequest> {
    let count = 5 + (random.unit() * 30.0) as usize;
    let request = |_| {
        let mut below = |limit: f64| (random.unit() * limit) as usize;
        let (prompt, output) = (20 + below(120.0), 1 + below(60.0));
        let (client, shared) = (["a", "b", "c"][below(3.0)], below(4.0));
        let prefix = if shared > 1 { vec![(format!("prefix {shared}"), 20)] } else { Vec::new() };
        let at = random.unit() * spread;
        LoadRequest { prefix, ..LoadRequest::new(at, client, prompt, output) }
    };
    (0..count).map(request).collect()
}

fn report(
    server: &Server,
    requests: &[LoadRequest],
    policy: &str,
) -> (LoadReport, Vec<RequestOutcome>) {
    let policy = PolicyChoice::from(policy);
    let (served, stats) = server.run(requests, &policy, None).expect("served");
    (LoadReport::new(policy.name(), &served, &stats, &Measure::default()), served)
}

/// A policy of those that have a name.
fn any_policy(seed: u64) -> &'static str {
    let known: Vec<&str> = known().iter().map(|known| known.name()).collect();
    known[seed as usize % known.len()]
}

#[test]
fn room_for_the_peak_means_no_preemption_and_every_answer() {
    let mut without = 0;
    for seed in 0..150 {
        let mut random = Random::new(seed);
        let (server, requests) = (server(&mut random), requests(&mut random, 5.0));
        without += report(&server, &requests, any_policy(seed)).0.preemptions;
        let options = ServerOptions { reserve: Reserve::Peak, ..server.options };
        let (report, _) = report(&Server { options, ..server }, &requests, any_policy(seed));
        assert_eq!((report.preemptions, report.recomputed_rows), (0, 0), "seed {seed}: {report:?}");
        assert_eq!(report.finished + report.refused, report.requests, "seed {seed}: {report:?}");
    }
    assert!(without > 50, "the workloads have {without} preemptions without it");
}

#[test]
fn every_token_is_counted_once() {
    for seed in 0..60 {
        let mut random = Random::new(seed + 1000);
        let (server, requests) = (server(&mut random), requests(&mut random, 5.0));
        let (report, served) = report(&server, &requests, any_policy(seed));
        let sum = |of: fn(&ClientReport) -> usize| report.clients.iter().map(of).sum::<usize>();
        let finished = || served.iter().filter(|request| request.finished);
        assert!(finished().all(|request| request.tokens.len() == request.output_tokens));
        assert_eq!(sum(|client| client.requests), requests.len());
        assert_eq!(sum(|client| client.finished), report.finished);
        assert_eq!(sum(|client| client.refused), report.refused);
        let generated: usize = served.iter().map(|request| request.tokens.len()).sum();
        assert_eq!(sum(|client| client.generated_tokens), generated);
        let begun = served.iter().filter(|request| !request.tokens.is_empty());
        let prompts: usize = begun.map(|request| request.prompt_tokens).sum();
        assert_eq!(sum(|client| client.prompt_tokens), prompts);
        let services: f64 = report.clients.iter().map(|client| client.service).sum();
        assert!(approx(services, (prompts + 2 * generated) as f64));
        let all = (prompts + generated) as f64;
        assert!(approx(report.tokens_per_second * report.duration_s / all.max(1.0), 1.0));
        // Windows that meet have all of the service.
        let whole = report.duration_s;
        let ticks = 9;
        let window = whole / (ticks + 1) as f64;
        let measure = Measure { ticks, window, ..Measure::default() };
        let stats = lapwing_actors::stats::EngineStats::default();
        let windows = LoadReport::new("", &served, &stats, &measure);
        let measure = Measure { ticks: 1, window: 2.0 * whole, ..Measure::default() };
        let one = LoadReport::new("", &served, &stats, &measure);
        for (client, parts) in one.clients.iter().zip(&windows.clients) {
            assert!((client.service_in_window[0] * 2.0 * whole - client.service).abs() < 1e-6);
            let in_parts: f64 = parts.service_in_window.iter().map(|rate| rate * window).sum();
            assert!(in_parts <= client.service + 1e-6, "seed {seed}");
        }
    }
}

#[test]
fn time_of_the_host_makes_nothing_earlier() {
    for seed in 0..60 {
        let mut random = Random::new(seed + 2000);
        let (server, requests) = (server(&mut random), requests(&mut random, 0.0));
        // Policies that rank by time may order requests anew.
        let policy = ["fcfs", "vtc", "lpm"][seed as usize % 3];
        let (_, with) = report(&server, &requests, policy);
        let options = ServerOptions { host: Duration::ZERO, ..server.options };
        let (_, without) = report(&Server { options, ..server.clone() }, &requests, policy);
        let host = server.options.host.as_secs_f64();
        for (with, without) in with.iter().zip(&without) {
            assert_eq!(with.tokens.len(), without.tokens.len(), "seed {seed}");
            let later = with.tokens.iter().zip(&without.tokens).all(|(a, b)| *a >= b + host - 1e-9);
            assert!(later, "seed {seed}: {with:?} {without:?}");
        }
    }
}

#[test]
fn a_larger_cache_refuses_no_more() {
    for seed in 0..60 {
        let mut random = Random::new(seed + 3000);
        let (server, requests) = (server(&mut random), requests(&mut random, 5.0));
        let policy = format!("{}:rpm=8", any_policy(seed));
        for reserve in [Reserve::Prompt, Reserve::Peak] {
            let options = ServerOptions { reserve, ..server.options };
            let refused = [60, 100, 150, 2000].map(|kv_tokens| {
                let server = Server { kv_tokens, options, ..server.clone() };
                report(&server, &requests, &policy).0.refused
            });
            assert!(refused.is_sorted_by(|small, large| small >= large), "{seed}: {refused:?}");
        }
    }
}
