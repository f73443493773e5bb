//! The summary of a run: key figures, lanes, idle time, overlap, counters and facts.

use std::fmt::Write;

use super::table::{Cell, Table};
use super::text;
use crate::event::LaneKind;
use crate::report::{IdleReport, Percentiles, Report};
use crate::text::{Glyphs, bars};

/// Writes a key figure.
pub(super) fn figure(html: &mut String, name: &str, value: Option<String>, note: &str) {
    let value = value.unwrap_or_else(|| "–".to_owned());
    let _ = writeln!(html, "<div><dt>{name}</dt><dd>{value}<small>{note}</small></dd></div>");
}

/// A time in ms, shown in a suitable unit.
pub(super) fn millis(ms: f64) -> String {
    text::nanos(ms * 1e6)
}

fn spread(percentiles: &Percentiles) -> (Option<String>, String) {
    let note = match (percentiles.p95, percentiles.p99) {
        (Some(p95), Some(p99)) => format!("p95 {} · p99 {}", millis(p95), millis(p99)),
        _ => String::new(),
    };
    (percentiles.p50.map(millis), note)
}

/// The summary section of one run.
pub(super) fn summary(report: &Report) -> String {
    let mut html = String::from("<dl class=\"figures\">\n");
    let achievable = report.overlap_achievable.map(text::percent);
    figure(&mut html, "Makespan", Some(text::nanos(report.makespan_ns as f64)), "");
    figure(&mut html, "Overlap achieved", report.overlap.map(text::percent), "of busy time");
    figure(&mut html, "Overlap achievable", achievable, "allowed by the dependencies");
    let efficiency = report.overlap_efficiency.map(text::percent);
    figure(&mut html, "Overlap efficiency", efficiency, "achieved ÷ achievable");
    if let Some((least, ratio)) = report.together.bound_ns.zip(report.together.makespan_by_bound) {
        let note = format!("bound {} by predicted times", text::nanos(least));
        figure(&mut html, "Makespan ÷ bound", Some(text::digits(ratio)), &note);
    }
    let requests = &report.requests;
    let rate = requests.tokens_per_second.map(text::digits);
    figure(&mut html, "Tokens per second", rate, "");
    let per_token = report.messages_per_token.map(text::digits);
    figure(&mut html, "Messages per token", per_token, "");
    for (name, percentiles) in [
        ("TTFT, median", &requests.ttft_ms),
        ("TPOT, median", &requests.tpot_ms),
        ("ITL, median", &requests.itl_ms),
    ] {
        let (median, note) = spread(percentiles);
        figure(&mut html, name, median, &note);
    }
    html.push_str("</dl>\n");
    for part in [lanes, drafts, together, reads, experts, idle, pairs, counters, facts] {
        html.push_str(&part(report));
    }
    html
}

fn facts(report: &Report) -> String {
    let mut table = Table::new("Run", "", &["Fact", "Value"]);
    for (key, value) in &report.meta {
        table.row(&[Cell::Text(key), Cell::Text(value)]);
    }
    table.row(&[Cell::Text("spans"), Cell::Text(&text::grouped(report.spans as u64))]);
    let dropped = text::grouped(report.events_dropped);
    table.row(&[Cell::Text("events dropped"), Cell::Text(&dropped)]);
    table.end("")
}

fn lanes(report: &Report) -> String {
    let heads =
        ["Lane", "#Busy", "#Idle", "Main idle cause", "#Spans", "#Slots", "#Wasted", "Kind"];
    let mut table = Table::new("Lanes", "lane", &heads);
    let (devices, others): (Vec<_>, Vec<_>) =
        report.lanes.iter().partition(|lane| lane.kind == LaneKind::Device.name());
    for lane in devices.into_iter().chain(others) {
        let cause = IdleReport::main(&lane.idle);
        table.row(&[
            Cell::Text(&lane.name),
            Cell::Share(lane.utilization),
            Cell::nanos(lane.idle_ns),
            cause.as_deref().map_or(Cell::None, Cell::Text),
            Cell::count(lane.spans),
            Cell::count(lane.slots),
            Cell::nanos(lane.wasted_ns),
            Cell::Text(lane.kind),
        ]);
    }
    table.end("No lanes.")
}

fn drafts(report: &Report) -> String {
    let heads = [
        "Lane",
        "Role",
        "#Passes",
        "#Rows",
        "#Drafted",
        "#Accepted",
        "#Wasted rows",
        "#Cancelled",
        "#Busy",
        "#Wasted",
    ];
    let mut table = Table::new("Speculative decoding", "", &heads);
    let rows = |rows: u64| Cell::Number(text::grouped(rows), rows as f64);
    for drafts in &report.drafts {
        table.row(&[
            Cell::Text(&drafts.lane),
            Cell::Text(drafts.role),
            Cell::count(drafts.passes),
            rows(drafts.rows),
            rows(drafts.drafted),
            rows(drafts.accepted),
            rows(drafts.wasted_rows),
            Cell::count(drafts.cancelled),
            Cell::nanos(drafts.busy_ns),
            Cell::nanos(drafts.wasted_ns),
        ]);
    }
    table.end("")
}

fn together(report: &Report) -> String {
    let title = "Kinds of work at the same time, each on a device of its own";
    let mut table = Table::new(title, "", &["Kinds", "#Time", "#Of the makespan"]);
    for (kinds, share) in report.together.overlaps() {
        let time = Cell::nanos((share * report.makespan_ns as f64) as u64);
        table.row(&[Cell::Text(&kinds.name()), time, Cell::Share(share)]);
    }
    table.end("")
}

fn reads(report: &Report) -> String {
    let heads =
        ["Lane", "Step", "#Steps", "#That read", "#Time", "#Reading", "#Share", "#Bytes", "#GB/s"];
    let mut table = Table::new("Waiting for data from the disk", "", &heads);
    for reads in &report.reads {
        table.row(&[
            Cell::Text(&reads.lane),
            Cell::Text(&reads.step),
            Cell::count(reads.steps),
            Cell::count(reads.reading),
            Cell::nanos(reads.busy_ns),
            Cell::nanos(reads.read_ns),
            Cell::Share(reads.share),
            Cell::Number(text::bytes(reads.bytes as f64), reads.bytes as f64),
            Cell::maybe(reads.gb_per_s, text::digits),
        ]);
    }
    table.end("")
}

fn experts(report: &Report) -> String {
    let heads = [
        "#Layer",
        "Model",
        "#Experts",
        "#With rows",
        "#Rows",
        "#Busiest",
        "#Its share",
        "#Least",
        "#Its share",
        "#Half of the rows in",
        "Rows of all experts, the busiest first",
    ];
    let mut table = Table::new("Experts", "", &heads);
    for layer in &report.experts {
        let model = if layer.model == 0 { "" } else { "draft" };
        let bars = bars(&layer.tenths, Glyphs::Unicode);
        table.row(&[
            Cell::count(layer.layer),
            Cell::Text(model),
            Cell::count(layer.experts),
            Cell::count(layer.with_rows),
            Cell::Number(text::grouped(layer.rows), layer.rows as f64),
            Cell::count(layer.busiest),
            Cell::Share(layer.busiest_share),
            Cell::count(layer.least),
            Cell::Share(layer.least_share),
            Cell::count(layer.half_in),
            Cell::Text(&bars),
        ]);
    }
    table.end("")
}

fn idle(report: &Report) -> String {
    let heads = ["Cause", "#Time", "#Share"];
    let mut table = Table::new("Idle time of the lanes that compute, by cause", "", &heads);
    for idle in &report.idle {
        table.row(&[Cell::Text(&idle.cause), Cell::nanos(idle.ns), Cell::Share(idle.share)]);
    }
    let mut html = table.end("No lane was ever idle.");
    let unknown = text::nanos(report.idle_unattributed_ns as f64);
    let _ = writeln!(html, "<p class=\"none\">Unattributed idle time of all lanes: {unknown}.</p>");
    html
}

fn pairs(report: &Report) -> String {
    let heads = ["Lane", "Other lane", "#Both busy", "#Share of the less busy lane"];
    let mut table = Table::new("Overlap of pairs of lanes", "", &heads);
    for pair in &report.overlap_pairs {
        let (a, b) = (Cell::Text(&pair.a), Cell::Text(&pair.b));
        table.row(&[a, b, Cell::nanos(pair.both_ns), Cell::Share(pair.ratio)]);
    }
    table.end("")
}

fn counters(report: &Report) -> String {
    let heads = ["Counter", "Lane", "#Min", "#Mean", "#Max", "#Last"];
    let mut table = Table::new("Counters", "", &heads);
    let whole = |value: i64| Cell::Number(value.to_string(), value as f64);
    for counter in &report.counters {
        table.row(&[
            Cell::Text(&counter.name),
            Cell::Text(&counter.lane),
            whole(counter.min),
            Cell::Number(text::digits(counter.mean), counter.mean),
            whole(counter.max),
            whole(counter.last),
        ]);
    }
    let mut html = table.end("");
    let mut table = Table::new("Memory freed", "", &["Memory", "#Count", "#Bytes"]);
    for freed in &report.freed {
        let size = Cell::Number(text::bytes(freed.bytes as f64), freed.bytes as f64);
        table.row(&[Cell::Text(&freed.name), Cell::count(freed.count), size]);
    }
    html.push_str(&table.end(""));
    html
}
