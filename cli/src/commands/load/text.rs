//! The reports of `load` as text and as comma-separated values.

use lapwing_lab::load::{ClientReport, LoadReport, RequestOutcome};
use lapwing_lab::table::table as comma_separated;
use lapwing_traces::report::Percentiles;
use lapwing_traces::text::counted;

use crate::cli::table::{Align, table};

/// Most clients that the text lists.
const CLIENTS_MAX: usize = 32;

/// Where a workload ran.
pub(super) fn place(is_virtual: bool) -> &'static str {
    if is_virtual { "in virtual time" } else { "on the live engine" }
}

/// A table of the policies, and for a single policy a table of its clients.
pub(super) fn report(workload: &str, is_virtual: bool, reports: &[LoadReport]) -> String {
    let place = place(is_virtual);
    let requests = reports.first().map_or(0, |report| report.requests);
    let requests = counted(requests, "request");
    let mut text = format!("{workload} ({requests}, {place})\n\n");
    let right = |title| (title, Align::Right);
    let header = [
        ("policy", Align::Left),
        right("done"),
        right("failed"),
        right("tokens/s"),
        right("TTFT p50 ms"),
        right("p95"),
        right("ITL p95 ms"),
        right("hits"),
        right("Jain"),
        right("at first end"),
        right("difference max"),
        right("avg"),
        right("accumulated"),
    ];
    text.push_str(&table(header, reports.iter().map(policy).collect()));
    if let [one] = reports {
        text.push('\n');
        let header = [
            ("client", Align::Left),
            right("requests"),
            right("done"),
            right("prompt"),
            right("cached"),
            right("generated"),
            right("service"),
            right("TTFT mean ms"),
            right("p50"),
            right("p95"),
        ];
        text.push_str(&table(header, one.clients.iter().take(CLIENTS_MAX).map(client).collect()));
        if let Some(more @ 1..) = one.clients.len().checked_sub(CLIENTS_MAX) {
            text.push_str(&format!("and {more} more clients (--json lists all)\n"));
        }
    }
    text
}

fn policy(report: &LoadReport) -> [String; 13] {
    let latencies = &report.latencies;
    [
        report.policy.clone(),
        report.finished.to_string(),
        report.aborted.to_string(),
        format!("{:.0}", report.tokens_per_second),
        ms(latencies.ttft_ms.p50),
        ms(latencies.ttft_ms.p95),
        ms(latencies.itl_ms.p95),
        format!("{:.0} %", 100.0 * report.hit_rate),
        format!("{:.3}", report.jain_index),
        format!("{:.3}", report.jain_at_first_end),
        format!("{:.1}", report.service_difference.max),
        format!("{:.1}", report.service_difference.avg),
        format!("{:.0}", report.accumulated_difference.max),
    ]
}

fn client(client: &ClientReport) -> [String; 10] {
    let Percentiles { p50, p95, .. } = client.latencies.ttft_ms;
    [
        client.client.clone(),
        client.requests.to_string(),
        client.finished.to_string(),
        client.prompt_tokens.to_string(),
        client.cached_tokens.to_string(),
        client.generated_tokens.to_string(),
        format!("{:.0}", client.service),
        ms(client.ttft.mean),
        ms(p50),
        ms(p95),
    ]
}

fn ms(value: Option<f64>) -> String {
    value.map_or("-".to_owned(), |value| format!("{value:.0}"))
}

/// A line for each policy, client and window: centre of the window in seconds, and service per second.
pub(super) fn csv(reports: &[LoadReport]) -> String {
    let mut rows = vec![["policy", "client", "window_s", "service"].map(str::to_owned)];
    for report in reports {
        for client in &report.clients {
            for (at, service) in report.window_s.iter().zip(&client.service_in_window) {
                let (policy, name) = (report.policy.to_string(), client.client.clone());
                rows.push([policy, name, format!("{at:.3}"), service.to_string()]);
            }
        }
    }
    comma_separated(rows)
}

/// The names of the values of [`times`].
pub(super) fn times_head() -> Vec<[String; 11]> {
    let head = [
        "policy",
        "request",
        "client",
        "arrival_s",
        "prompt_tokens",
        "output_tokens",
        "cached_tokens",
        "admitted_s",
        "first_token_s",
        "last_token_s",
        "outcome",
    ];
    vec![head.map(str::to_owned)]
}

/// A line for each request under a policy; times are from the start of the run, and empty if there is none.
pub(super) fn times<'a>(
    policy: &'a str,
    outcomes: &'a [RequestOutcome],
) -> impl Iterator<Item = [String; 11]> + 'a {
    let seconds = |at: Option<f64>| at.map_or(String::new(), |at| format!("{at:.6}"));
    outcomes.iter().enumerate().map(move |(number, request)| {
        let outcome = match request {
            RequestOutcome { finished: true, .. } => "finished",
            RequestOutcome { refused: true, .. } => "refused",
            RequestOutcome { error: Some(_), .. } => "failed",
            _ => "unfinished",
        };
        [
            policy.to_owned(),
            number.to_string(),
            request.client.clone(),
            seconds(Some(request.at)),
            request.prompt_tokens.to_string(),
            request.output_tokens.to_string(),
            request.cached_tokens.to_string(),
            seconds(request.admitted),
            seconds(request.tokens.first().copied()),
            seconds(request.tokens.last().copied()),
            outcome.to_owned(),
        ]
    })
}
