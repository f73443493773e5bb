//! One sentence on top of the page: where the time of the run went.

use std::fmt::Write;

use super::run::{PageRun, letter};
use super::text::{self, Escaped};
use crate::report::Report;

/// Most parts that the sentence names.
const PARTS_MAX: usize = 4;

/// Shares of the makespan that are not worth a word.
const LEAST: f64 = 0.01;

/// A part of the critical path: work on one lane, or waiting for one cause.
struct Part<'a> {
    name: String,
    share: f64,
    /// The op with the largest share.
    op: Option<(&'a str, f64)>,
}

/// A sentence for each run.
pub(super) fn answer(runs: &[PageRun<'_>]) -> String {
    let mut html = String::new();
    for (at, run) in runs.iter().enumerate() {
        html.push_str("<p>");
        if runs.len() > 1 {
            let _ = write!(html, "<span class=\"letter\">{}</span> ", letter(at));
        }
        let _ = writeln!(html, "{}</p>", sentence(run.report));
    }
    html
}

/// The largest parts of the critical path, which add up to the makespan.
fn sentence(report: &Report) -> String {
    let parts = parts(report);
    if parts.is_empty() {
        return "No spans were recorded.".to_owned();
    }
    let mut html = format!("Where the <b>{}</b> went: ", text::nanos(report.makespan_ns as f64));
    let mut rest = 0.0;
    let mut named = 0;
    for part in &parts {
        if named == PARTS_MAX || (named > 0 && part.share < LEAST) {
            rest += part.share;
            continue;
        }
        let comma = if named == 0 { "" } else { ", " };
        let _ = write!(html, "{comma}<b>{}</b> {}", text::percent(part.share), part.name);
        // The detail of the largest part; those of the others would hide the answer.
        if let Some((op, share)) = part.op.filter(|_| named == 0) {
            let _ = write!(html, " (most in <bdi>{}</bdi>: {})", Escaped(op), text::percent(share));
        }
        named += 1;
    }
    if rest >= LEAST / 10.0 {
        let _ = write!(html, ", {} other", text::percent(rest));
    }
    html + "."
}

/// Parts by share, largest first.
fn parts(report: &Report) -> Vec<Part<'_>> {
    let mut parts: Vec<Part<'_>> = Vec::new();
    for row in &report.critical_path {
        let runs = row.cause == "running";
        let name = match runs {
            true => format!("work on <bdi>{}</bdi>", Escaped(&row.lane)),
            false => format!("waiting: {}", Escaped(&row.cause)),
        };
        let at = parts.iter().position(|part| part.name == name).unwrap_or_else(|| {
            parts.push(Part { name, share: 0.0, op: None });
            parts.len() - 1
        });
        let part = &mut parts[at];
        part.share += row.share;
        if runs && part.op.is_none_or(|(_, share)| share < row.share) {
            part.op = Some((&row.op, row.share));
        }
    }
    parts.sort_by(|a, b| b.share.total_cmp(&a.share));
    parts
}
