//! Shows the figures of the report as sections of the page.

use std::fmt::Write;

use super::charts;
use super::run::{PageRun, letter};
use super::summary::{figure, millis, summary};
use super::table::{Cell, Table};
use super::text::{self, Escaped};
use crate::report::{Report, RequestsReport};

/// A section of the page.
struct Section {
    id: &'static str,
    title: &'static str,
    /// Writes the section for one run.
    write: fn(&Report) -> String,
}

const SECTIONS: &[Section] = &[
    Section { id: "summary", title: "Summary", write: summary },
    Section { id: "critical", title: "Critical path", write: critical },
    Section { id: "ops", title: "Ops", write: ops },
    Section { id: "waits", title: "Waits", write: waits },
    Section { id: "messages", title: "Messages", write: messages },
    Section { id: "requests", title: "Requests", write: requests },
];

/// All sections. Each has a part for every run.
pub(super) fn sections(runs: &[PageRun<'_>]) -> String {
    let mut html = String::new();
    for Section { id, title, write } in SECTIONS {
        let _ = write!(html, "<section id=\"{id}\" aria-labelledby=\"{id}-title\">");
        let _ = writeln!(html, "<h2 id=\"{id}-title\">{title}</h2>");
        for (at, run) in runs.iter().enumerate() {
            let _ = writeln!(html, "<div class=\"side\" data-side=\"{at}\">");
            if runs.len() > 1 {
                let letter = letter(at);
                let _ = write!(html, "<h3><span class=\"letter\">{letter}</span> ");
                let _ = writeln!(html, "<bdi>{}</bdi></h3>", Escaped(run.title));
            }
            html.push_str(&write(run.report));
            html.push_str("</div>\n");
        }
        html.push_str("</section>\n");
    }
    html
}

/// Warnings that the recording is incomplete; shown at the top of the page.
pub(super) fn warnings(runs: &[PageRun<'_>]) -> String {
    let mut html = String::new();
    for (at, run) in runs.iter().enumerate() {
        let prefix = if runs.len() > 1 { format!("Run {}: ", letter(at)) } else { String::new() };
        let report = run.report;
        for (count, what) in [
            (
                report.events_dropped,
                "events were dropped while recording, so times and causes near \
              them may be wrong. Record less, or use larger rings.",
            ),
            (
                report.events_orphaned,
                "events have no counterpart (such as an end without a start) and \
              are not shown.",
            ),
        ] {
            if count > 0 {
                let count = text::grouped(count);
                let _ = writeln!(html, "<p class=\"warning\">{prefix}<b>{count}</b> {what}</p>");
            }
        }
    }
    html
}

fn critical(report: &Report) -> String {
    let heads = ["Lane", "Running, or cause of waiting", "Op", "#Time", "#Share", "#Segments"];
    let mut table = Table::new("Breakdown of the makespan", "op:2", &heads);
    for row in &report.critical_path {
        table.row(&[
            Cell::Text(&row.lane),
            Cell::Text(&row.cause),
            Cell::Text(&row.op),
            Cell::nanos(row.ns),
            Cell::Share(row.share),
            Cell::count(row.count),
        ]);
    }
    table.end("No spans were recorded.")
}

fn ops(report: &Report) -> String {
    let heads = [
        "Op",
        "Lane",
        "#Count",
        "#Self time",
        "#GFLOP/s",
        "#GB/s",
        "#Median",
        "#On critical path",
        "#Min slack",
        "#p95",
        "#Max",
        "#Bytes",
        "#FLOPs",
        "Activity",
    ];
    let mut table = Table::new("Ops by name and lane", "op:0", &heads);
    for op in &report.ops {
        let duration = &op.duration_ns;
        table.row(&[
            Cell::Text(&op.name),
            Cell::Text(&op.lane),
            Cell::count(op.count),
            Cell::nanos(op.self_ns),
            Cell::maybe(op.gflop_per_s, text::digits),
            Cell::maybe(op.gb_per_s, text::digits),
            Cell::maybe(duration.p50, text::nanos),
            Cell::nanos(op.critical_ns),
            Cell::nanos(op.slack_min_ns),
            Cell::maybe(duration.p95, text::nanos),
            Cell::maybe(duration.max, text::nanos),
            Cell::Number(text::bytes(op.bytes as f64), op.bytes as f64),
            Cell::Number(text::count(op.flops as f64, ""), op.flops as f64),
            Cell::Text(op.activity),
        ]);
    }
    table.end("No spans were recorded.")
}

fn waits(report: &Report) -> String {
    let heads = [
        "Wait",
        "Mode",
        "#Count",
        "#Slept",
        "#Polled",
        "#Late, median",
        "#Late, p99",
        "#Error, median",
        "#Relative error, median",
        "#99 % margin",
    ];
    let mut table = Table::new("Predicted waits", "", &heads);
    for wait in &report.waits {
        table.row(&[
            Cell::Text(&wait.name),
            Cell::Text(wait.mode),
            Cell::count(wait.count),
            Cell::nanos(wait.slept_ns),
            Cell::nanos(wait.spun_ns),
            Cell::maybe(wait.late_ns.p50, text::nanos),
            Cell::maybe(wait.late_ns.p99, text::nanos),
            Cell::maybe(wait.error_ns.and_then(|error| error.p50), text::nanos),
            Cell::maybe(wait.error_relative_median, text::percent),
            Cell::maybe(wait.margin_best_ns.map(|margin| margin as f64), text::nanos),
        ]);
    }
    let mut html = table.end("No predicted waits were recorded.");
    for wait in &report.waits {
        html.push_str(&charts::wait(wait));
    }
    html
}

fn messages(report: &Report) -> String {
    let heads = [
        "Message",
        "#Count",
        "#Bytes",
        "#Lost",
        "#Delay, median",
        "#Delay, p99",
        "#Delay, max",
        "#Stalled",
    ];
    let mut table = Table::new("Messages; the delay is from sent to received", "", &heads);
    for message in &report.messages {
        let delay = &message.delay_ns;
        table.row(&[
            Cell::Text(&message.name),
            Cell::count(message.count),
            Cell::Number(text::bytes(message.bytes as f64), message.bytes as f64),
            Cell::count(message.lost),
            Cell::maybe(delay.p50, text::nanos),
            Cell::maybe(delay.p99, text::nanos),
            Cell::maybe(delay.max, text::nanos),
            Cell::nanos(message.held_ns),
        ]);
    }
    table.end("No messages were recorded.")
}

fn requests(report: &Report) -> String {
    let requests = &report.requests;
    let mut html = String::from("<dl class=\"figures\">\n");
    let count = |count: usize| Some(text::grouped(count as u64));
    let note = format!("{} cancelled · {} failed", requests.cancelled, requests.failed);
    figure(&mut html, "Requests", count(requests.count), "");
    figure(&mut html, "Finished", count(requests.finished), &note);
    let mut cached = format!("{} from the prefix cache", text::grouped(requests.cached_tokens));
    if requests.recomputed_tokens > 0 {
        let again = text::grouped(requests.recomputed_tokens);
        _ = write!(cached, " · {again} known but computed again");
    }
    figure(&mut html, "Prompt tokens", Some(text::grouped(requests.prompt_tokens)), &cached);
    figure(&mut html, "Generated tokens", Some(text::grouped(requests.generated_tokens)), "");
    if let Some(late) = requests.gaps_late {
        figure(&mut html, "Late token gaps", count(late), &worst(requests));
    }
    html.push_str("</dl>\n");
    let heads = ["Latency", "#Count", "#Mean", "#p50", "#p90", "#p95", "#p99", "#Max"];
    let mut table = Table::new("Latencies", "", &heads);
    for (name, spread) in [
        ("Queue time", &requests.queued_ms),
        ("Time to first token (TTFT)", &requests.ttft_ms),
        ("Time per output token (TPOT)", &requests.tpot_ms),
        ("Inter-token latency (ITL)", &requests.itl_ms),
        ("Time between moments with tokens (token gap)", &requests.gap_ms),
    ] {
        table.row(&[
            Cell::Text(name),
            Cell::count(spread.count),
            Cell::maybe(spread.mean, millis),
            Cell::maybe(spread.p50, millis),
            Cell::maybe(spread.p90, millis),
            Cell::maybe(spread.p95, millis),
            Cell::maybe(spread.p99, millis),
            Cell::maybe(spread.max, millis),
        ]);
    }
    html.push_str(&table.end(""));
    html
}

/// The token gap that is farthest beyond its target; empty if none is.
fn worst(requests: &RequestsReport) -> String {
    let worst = requests.worst_gap().and_then(|of| Some((of, of.gap_max_ms?, of.gap_target_ms?)));
    worst.map_or_else(String::new, |(of, gap, target)| {
        let (gap, target) = (millis(gap), millis(target));
        format!("worst {gap} in request {}, target {target}", of.request)
    })
}
