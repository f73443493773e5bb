//! Shows the most important figures of the report.

use super::counted::counted;
use super::format::{bold, duration, name, or_dash, percent, wrapped};
use super::options::TextOptions;
use crate::report::Report;

/// The most important figures, one per line.
pub(super) fn head(report: &Report, options: &TextOptions) -> String {
    let time = |nanos: u64| duration(nanos as f64, options.glyphs);
    let mut lines = vec![format!("makespan {}", time(report.makespan_ns))];
    let share = |value: Option<f64>| or_dash(value.map(percent));
    lines.push(format!(
        "overlap {}, achievable {}, efficiency {}",
        share(report.overlap),
        share(report.overlap_achievable),
        share(report.overlap_efficiency)
    ));
    let (spans, lanes) = (counted(report.spans, "span"), counted(report.lanes.len(), "lane"));
    lines.push(format!("{spans}, {lanes}"));
    if report.idle_unattributed_ns > 0 {
        lines.push(format!("unattributed idle time {}", time(report.idle_unattributed_ns)));
    }
    if report.events_dropped > 0 || report.events_orphaned > 0 {
        lines.push(format!(
            "incomplete recording: {} events dropped, {} without a counterpart",
            report.events_dropped, report.events_orphaned
        ));
    }
    for (key, value) in &report.meta {
        lines.push(name(&format!("{key} {value}"), options.width, options.glyphs));
    }
    let wrap = |line: String| wrapped(&line, options.width, options.glyphs);
    let mut lines: Vec<String> = lines.into_iter().map(wrap).collect();
    lines[0] = bold(&lines[0], options);
    lines.join("\n") + "\n"
}
