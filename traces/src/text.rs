//! Draws a timeline in a terminal, as a Gantt chart with tables.

use crate::analysis::Analysis;
use crate::analysis::diff::Diff;
use crate::report::Report;
use crate::timeline::Timeline;

mod counted;
mod difference;
mod drafts;
mod experts;
mod format;
mod gantt;
mod head;
mod options;
mod reads;
mod scale;
mod streams;
mod summary;
mod together;

pub use counted::counted;
pub(crate) use experts::bars;
pub use options::{Colours, Glyphs, TextOptions, WIDTH_MAX, WIDTH_MIN};

/// Draws a run: one row for each slot of each lane, idle time as a letter for its cause, the
/// critical path below each lane that it runs through, and the figures of the report as tables.
/// Names are shown without control characters. No line is wider than `width`, unless names contain
/// characters that are two columns wide.
pub fn text(
    timeline: &Timeline,
    analysis: &Analysis,
    report: &Report,
    options: &TextOptions,
) -> String {
    let options = TextOptions { width: options.width.clamp(WIDTH_MIN, WIDTH_MAX), ..*options };
    let mut text = head::head(report, &options);
    if !timeline.spans.is_empty() {
        text.push('\n');
        text.push_str(&gantt::draw(timeline, analysis, &options));
    }
    text.push_str(&summary::tables(report, &options));
    text
}

/// Shows the difference of two runs: the breakdown of the difference in makespan, and the ops that
/// changed most.
pub fn difference(diff: &Diff, options: &TextOptions) -> String {
    let options = TextOptions { width: options.width.clamp(WIDTH_MIN, WIDTH_MAX), ..*options };
    difference::draw(diff, &options)
}
