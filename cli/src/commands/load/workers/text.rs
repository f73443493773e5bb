//! The reports of several workers as text and as comma-separated values.

use lapwing_lab::load::{LoadReport, WorkersReport};
use lapwing_lab::table::table as comma_separated;
use lapwing_traces::report::Percentiles;
use lapwing_traces::text::counted;

use crate::cli::table::{Align, table};

/// Number of workers, in words.
pub(super) fn workers(reports: &[WorkersReport]) -> String {
    counted(reports.first().map_or(0, |report| report.workers.len()), "worker")
}

/// The report of all workers together, under the name of both policies.
pub(super) fn whole(report: &WorkersReport) -> LoadReport {
    let mut all = report.all.clone();
    all.policy = format!("{}, {}", report.route, all.policy);
    all
}

/// Most workers that the text lists.
const WORKERS_MAX: usize = 32;

fn right(title: &str) -> (&str, Align) {
    (title, Align::Right)
}

/// A table of the policies, and for a single pair of them a table of the workers.
pub(super) fn report(workload: &str, reports: &[WorkersReport]) -> String {
    let requests = reports.first().map_or(0, |report| report.all.requests);
    let requests = counted(requests, "request");
    let mut text = format!("{workload} ({requests}, {} in virtual time)\n\n", workers(reports));
    let header = [
        ("route", Align::Left),
        ("policy", Align::Left),
        right("done"),
        right("failed"),
        right("tokens/s"),
        right("TTFT mean ms"),
        right("p50"),
        right("p99"),
        right("response mean ms"),
        right("p99"),
        right("hits"),
        right("Jain"),
        right("imbalance"),
    ];
    text.push_str(&table(header, reports.iter().map(row).collect()));
    for report in reports.iter().filter(|report| report.decision_us.count > 0) {
        let Percentiles { p50, p99, max, .. } = report.decision_us;
        let [p50, p99, max] = [p50, p99, max].map(|us| us.unwrap_or_default());
        let (route, policy) = (&report.route, &report.all.policy);
        text.push_str(&format!(
            "\ndecisions of {route}, {policy}: p50 {p50:.2} µs, p99 {p99:.2} µs, longest {max:.0} µs\n"
        ));
    }
    if let [one] = reports {
        text.push('\n');
        text.push_str(&of_workers(one));
    }
    text
}

fn row(report: &WorkersReport) -> [String; 13] {
    let all = &report.all;
    let (ttft, response) = (all.latencies.ttft_ms, all.latencies.response_ms);
    [
        report.route.clone(),
        all.policy.clone(),
        all.finished.to_string(),
        all.aborted.to_string(),
        format!("{:.0}", all.tokens_per_second),
        ms(ttft.mean),
        ms(ttft.p50),
        ms(ttft.p99),
        ms(response.mean),
        ms(response.p99),
        percent(all.hit_rate),
        format!("{:.3}", all.jain_index),
        format!("{:.2}", report.imbalance.busy),
    ]
}

fn of_workers(report: &WorkersReport) -> String {
    let header = [
        right("worker"),
        right("speed"),
        right("requests"),
        right("done"),
        right("busy"),
        right("hits"),
        right("prompt"),
        right("cached"),
        right("generated"),
        right("TTFT p50 ms"),
        right("p99"),
    ];
    let rows = report.workers.iter().take(WORKERS_MAX).map(|worker| {
        [
            worker.worker.to_string(),
            worker.speed.to_string(),
            worker.requests.to_string(),
            worker.finished.to_string(),
            percent(worker.busy_share),
            percent(worker.hit_rate),
            worker.prompt_tokens.to_string(),
            worker.cached_tokens.to_string(),
            worker.generated_tokens.to_string(),
            ms(worker.ttft_ms.p50),
            ms(worker.ttft_ms.p99),
        ]
    });
    let mut text = table(header, rows.collect());
    if let Some(more @ 1..) = report.workers.len().checked_sub(WORKERS_MAX) {
        text.push_str(&format!("and {more} more workers (--json lists all)\n"));
    }
    text
}

fn percent(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}

fn ms(value: Option<f64>) -> String {
    value.map_or("-".to_owned(), |value| format!("{value:.0}"))
}

/// A line for each pair of policies and worker.
pub(super) fn csv(reports: &[WorkersReport]) -> String {
    let columns = [
        "route",
        "policy",
        "worker",
        "speed",
        "requests",
        "finished",
        "busy_share",
        "hit_rate",
        "prompt_tokens",
        "cached_tokens",
        "generated_tokens",
        "ttft_mean_ms",
        "ttft_p99_ms",
    ];
    let mut rows = vec![columns.map(str::to_owned)];
    for report in reports {
        for worker in &report.workers {
            let known = |value: Option<f64>| value.map_or_else(String::new, |it| it.to_string());
            rows.push([
                report.route.clone(),
                report.all.policy.clone(),
                worker.worker.to_string(),
                worker.speed.to_string(),
                worker.requests.to_string(),
                worker.finished.to_string(),
                worker.busy_share.to_string(),
                worker.hit_rate.to_string(),
                worker.prompt_tokens.to_string(),
                worker.cached_tokens.to_string(),
                worker.generated_tokens.to_string(),
                known(worker.ttft_ms.mean),
                known(worker.ttft_ms.p99),
            ]);
        }
    }
    comma_separated(rows)
}
