//! Says which kinds of work ran at the same time, and how close the run is to the least time of its devices.

use super::format::Align::{Left, Right};
use super::format::{duration, percent, table, wrapped};
use super::options::TextOptions;
use crate::report::Report;

/// A table of sets of kinds, if some ran at the same time, and a sentence about the bound, if there is one.
pub(super) fn text_of(report: &Report, options: &TextOptions) -> String {
    let header = [("at the same time", Left), ("time", Right), ("share", Right)];
    let time = |nanos: f64| duration(nanos, options.glyphs);
    let makespan = report.makespan_ns as f64;
    let overlaps = report.together.overlaps();
    let rows: Vec<_> = overlaps
        .iter()
        .map(|(set, share)| [set.name(), time(share * makespan), percent(*share)])
        .collect();
    let overlaps = table("Kinds of work, each on a device of its own", header, &rows, options);
    let bound = report.together.bound_ns.zip(report.together.makespan_by_bound);
    let sentence = bound.map(|(least, ratio)| {
        let least = time(least);
        let line = format!(
            "Bound of the devices: {least} by predicted times, of which the run took {ratio:.2} times as long"
        );
        let lines = wrapped(&line, options.width.saturating_sub(2), options.glyphs);
        lines.lines().map(|line| format!("  {line}\n")).collect::<String>()
    });
    match sentence {
        None => overlaps,
        Some(lines) => format!("{overlaps}\n{lines}"),
    }
}
