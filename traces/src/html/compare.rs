//! Compares two runs: their key figures, and a breakdown of the difference in makespan.

use std::fmt::Write;

use super::run::PageRun;
use super::summary::millis;
use super::table::{Cell, Table};
use super::text;
use crate::analysis::diff::Diff;
use crate::report::Report;

/// A figure of a report that can be compared.
struct Number {
    name: &'static str,
    of: fn(&Report) -> Option<f64>,
    show: fn(f64) -> String,
}

fn plain(value: f64) -> String {
    format!("{value:.2}")
}

fn whole(value: f64) -> String {
    format!("{value:.0}")
}

const NUMBERS: &[Number] = &[
    Number { name: "Makespan", of: |r| Some(r.makespan_ns as f64), show: text::nanos },
    Number { name: "Overlap achieved", of: |r| r.overlap, show: text::percent },
    Number { name: "Overlap achievable", of: |r| r.overlap_achievable, show: text::percent },
    Number { name: "Overlap efficiency", of: |r| r.overlap_efficiency, show: text::percent },
    Number { name: "Idle time of the lanes that compute", of: idle, show: text::nanos },
    Number {
        name: "Unattributed idle time",
        of: |r| Some(r.idle_unattributed_ns as f64),
        show: text::nanos,
    },
    Number { name: "Tokens per second", of: |r| r.requests.tokens_per_second, show: plain },
    Number { name: "TTFT, median", of: |r| r.requests.ttft_ms.p50, show: millis },
    Number { name: "TTFT, p99", of: |r| r.requests.ttft_ms.p99, show: millis },
    Number { name: "TPOT, median", of: |r| r.requests.tpot_ms.p50, show: millis },
    Number { name: "ITL, median", of: |r| r.requests.itl_ms.p50, show: millis },
    Number { name: "ITL, p99", of: |r| r.requests.itl_ms.p99, show: millis },
    Number { name: "Token gap, max", of: |r| r.requests.gap_ms.max, show: millis },
    Number {
        name: "Late token gaps",
        of: |r| r.requests.gaps_late.map(|late| late as f64),
        show: whole,
    },
    Number { name: "Messages per token", of: |r| r.messages_per_token, show: plain },
    Number { name: "Spans", of: |r| Some(r.spans as f64), show: whole },
    Number { name: "Events dropped", of: |r| Some(r.events_dropped as f64), show: whole },
];

fn idle(report: &Report) -> Option<f64> {
    Some(report.idle.iter().map(|idle| idle.ns as f64).sum())
}

/// The section that compares two runs; empty for one run.
pub(super) fn compare(runs: &[PageRun<'_>]) -> String {
    let [a, b] = runs else { return String::new() };
    let diff = Diff::new((a.timeline, a.analysis), (b.timeline, b.analysis));
    let mut html = String::from(
        "<section id=\"compare\" aria-labelledby=\"compare-title\">\
         <h2 id=\"compare-title\">Compare</h2>\n",
    );
    html.push_str(&waterfall(&diff));
    let heads = ["Figure", "#A", "#B", "#B − A", "#Change"];
    let mut table = Table::new("Key figures of both runs", "", &heads);
    for number in NUMBERS {
        let (a, b) = ((number.of)(a.report), (number.of)(b.report));
        difference(&mut table, number.name, a, b, number.show);
    }
    html.push_str(&table.end(""));
    let mut table =
        Table::new("Busy time of lanes", "", &["Lane", "#A", "#B", "#B − A", "#Change"]);
    let busy = |report: &Report, name: &str| {
        report.lanes.iter().find(|lane| lane.name == name).map(|lane| lane.busy_ns as f64)
    };
    let alone = b.report.lanes.iter().filter(|l| busy(a.report, &l.name).is_none());
    for lane in a.report.lanes.iter().chain(alone) {
        let (of_a, of_b) = (busy(a.report, &lane.name), busy(b.report, &lane.name));
        difference(&mut table, &lane.name, of_a, of_b, text::nanos);
    }
    html.push_str(&table.end(""));
    html + "</section>\n"
}

fn difference(
    table: &mut Table,
    name: &str,
    a: Option<f64>,
    b: Option<f64>,
    show: fn(f64) -> String,
) {
    let change = a.zip(b).map(|(a, b)| b - a);
    let signed = |value: f64| format!("{}{}", if value > 0.0 { "+" } else { "" }, show(value));
    let relative = change.zip(a).filter(|(_, a)| *a != 0.0).map(|(change, a)| change / a);
    table.row(&[
        Cell::Text(name),
        Cell::maybe(a, show),
        Cell::maybe(b, show),
        Cell::maybe(change, signed),
        Cell::maybe(relative, |share| {
            format!("{}{}", if share > 0.0 { "+" } else { "" }, text::percent(share))
        }),
    ]);
}

fn signed_nanos(delta: f64) -> String {
    format!("{}{}", if delta > 0.0 { "+" } else { "" }, text::nanos(delta))
}

/// Breakdown of the difference in makespan, and the difference of each op.
fn waterfall(diff: &Diff) -> String {
    let most = diff.waterfall.iter().map(|step| step.delta_ns.unsigned_abs()).max();
    let most = most.unwrap_or(0).max(1) as f64;
    let mut html = String::new();
    let _ = writeln!(
        html,
        "<p>The makespan is <b>{}</b> in A and <b>{}</b> in B: {}.</p>",
        text::nanos(diff.a_ns as f64),
        text::nanos(diff.b_ns as f64),
        signed_nanos(diff.delta_ns as f64)
    );
    let heads =
        ["Op", "Lane", "#B − A", "shorter ◂ ▸ longer", "Running, or cause of waiting", "#A", "#B"];
    let mut table = Table::new("Breakdown of the difference", "op:0", &heads);
    for step in &diff.waterfall {
        let delta = step.delta_ns as f64;
        table.row(&[
            Cell::Text(&step.op),
            Cell::Text(&step.lane),
            Cell::Number(signed_nanos(delta), delta),
            Cell::Signed(delta / most),
            Cell::Text(&step.cause),
            Cell::nanos(step.a_ns),
            Cell::nanos(step.b_ns),
        ]);
    }
    html.push_str(&table.end("The critical paths do not differ."));
    let heads = ["Op", "Lane", "#B − A", "#A", "#B", "#In both", "#Only A", "#Only B"];
    let mut table = Table::new("Ops of both runs", "op:0", &heads);
    for op in &diff.ops {
        let delta = op.delta_ns as f64;
        table.row(&[
            Cell::Text(&op.name),
            Cell::Text(&op.lane),
            Cell::Number(signed_nanos(delta), delta),
            Cell::nanos(op.a_ns),
            Cell::nanos(op.b_ns),
            Cell::count(op.matched),
            Cell::count(op.only_a),
            Cell::count(op.only_b),
        ]);
    }
    html + &table.end("")
}
