use lapwing_actors::stats::EngineStats;

use super::approx;
use crate::load::*;

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
    let refused = RequestOutcome {
        at: 8.0,
        refused: true,
        error: Some("too many".to_owned()),
        ..request("b", &[], false)
    };
    vec![request("a", &[1.0, 2.0, 4.0], true), request("b", &[9.0], false), refused]
}

fn stats() -> EngineStats {
    let mut stats = EngineStats::default();
    (stats.all.preempted, stats.all.recomputed_rows) = (3, 40);
    stats.policy_numbers = vec![("counter a".to_owned(), 16.0)];
    stats
}

#[test]
fn a_report_counts_requests_tokens_and_latencies() {
    let report = LoadReport::new("fcfs", &outcomes(), &stats(), &Measure::default());
    assert_eq!((report.requests, report.finished, report.aborted, report.refused), (3, 1, 1, 1));
    let services: Vec<f64> = report.clients.iter().map(|client| client.service).collect();
    assert_eq!(services, [10.0 + 2.0 * 3.0, 10.0 + 2.0]);
    assert!(approx(report.jain_index, 28.0 * 28.0 / (2.0 * (16.0 * 16.0 + 12.0 * 12.0))));
    assert!(approx(report.hit_rate, 0.5) && approx(report.duration_s, 9.0));
    // 20 prompt tokens and 4 generated ones until the last.
    assert!(approx(report.tokens_per_second, 24.0 / 9.0));
    assert!(approx(report.generated_tokens_per_second, 4.0 / 9.0));
    assert_eq!((report.preemptions, report.recomputed_rows), (3, 40));
    assert_eq!(report.policy_numbers["counter a"], 16.0);
    let [a, b] = &report.clients[..] else { panic!("{:?}", report.clients) };
    assert_eq!(
        (a.refused, b.refused, a.ttft.mean, b.ttft.mean),
        (0, 1, Some(1000.0), Some(9000.0))
    );
    assert_eq!(a.latencies.ttft_ms.p50, Some(1000.0));
    assert_eq!(a.latencies.tpot_ms.p50, Some(1500.0));
    assert_eq!((a.latencies.itl_ms.min, a.latencies.itl_ms.max), (Some(1000.0), Some(2000.0)));
    assert_eq!(a.latencies.response_ms.p50, Some(4000.0));
    let page = page("two <clients>", "in virtual time", &[report]);
    for part in
        ["Load: two &lt;clients&gt;", "3 requests", "Service of clients: fcfs", "Response time"]
    {
        assert!(page.contains(part), "{part}: {page}");
    }
    let nothing = LoadReport::new("fcfs", &[], &EngineStats::default(), &Measure::default());
    assert!(nothing.jain_index == 1.0 && nothing.tokens_per_second == 0.0);
}

#[test]
fn service_is_spread_and_compared_in_windows() {
    let (window, ticks, warm_up) = (4.0, 2, 1.0);
    let measure = Measure { window, ticks, warm_up, until: Some(10.0), ..Measure::default() };
    let report = LoadReport::new("fcfs", &outcomes(), &stats(), &measure);
    assert_eq!(report.window_s, [4.0, 7.0]);
    // a gets 16 from 1 to 4, of which the first window from 2 to 6 has two thirds; b gets 12 at 9, and asks for 16 at 8.
    let rates: Vec<f64> = report.clients.iter().flat_map(|c| c.service_in_window.clone()).collect();
    assert!(rates.iter().zip([16.0 * 2.0 / 3.0 / 4.0, 0.0, 0.0, 0.0]).all(|(a, b)| approx(*a, b)));
    // In the first window b requests nothing, so its difference is 0. In the second window no client is served.
    assert_eq!(report.difference_in_window, [0.0, 0.0]);
    let measure = Measure { window: 8.0, ..measure };
    let report = LoadReport::new("fcfs", &outcomes(), &stats(), &measure);
    // From 0 to 8: a gets 16 and asks for 16, b asks for 32 and gets nothing. From 3 to 11: a gets a third of 16 and asks for
    // nothing; b gets 12 and asks for 16.
    let second = (12.0_f64 - 16.0 / 3.0).min(16.0 / 3.0) / 8.0;
    for (found, expected) in report.difference_in_window.iter().zip([16.0 / 8.0, second]) {
        assert!(approx(*found, expected), "{found} for {expected}");
    }
    let difference = report.service_difference;
    assert!(approx(difference.max, 2.0) && approx(difference.avg, (2.0 + second) / 2.0));
    // From 1 on, a has all of its 16 at the first tick, and b nothing at both.
    assert!(approx(report.accumulated_difference.max, 16.0));
    // a ends at 4, when b has nothing: one of two clients got everything.
    assert!(approx(report.jain_at_first_end, 0.5));
}
