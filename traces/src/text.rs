//! The timeline in a terminal: a Gantt chart and tables.

use crate::analysis::Analysis;
use crate::analysis::diff::Diff;
use crate::report::Report;
use crate::timeline::Timeline;

mod difference;
mod format;
mod gantt;
mod head;
mod scale;
mod summary;

/// Signs to draw with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Glyphs {
    /// Blocks and lines of Unicode.
    #[default]
    Unicode,
    /// ASCII alone, except in names.
    Ascii,
}

/// Whether colours are used. They repeat what the signs say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Colours {
    /// Plain text without escape codes.
    #[default]
    Plain,
    /// ANSI escape codes.
    Ansi,
}

/// How to draw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextOptions {
    /// Columns; [`WIDTH_MIN`] to [`WIDTH_MAX`] are used.
    pub width: usize,
    /// Signs.
    pub glyphs: Glyphs,
    /// Colours.
    pub colours: Colours,
    /// Most rows of a table of ops, stretches of the critical path, messages or waits.
    pub rows_max: usize,
}

impl Default for TextOptions {
    fn default() -> TextOptions {
        TextOptions {
            width: 100,
            glyphs: Glyphs::default(),
            colours: Colours::default(),
            rows_max: 12,
        }
    }
}

/// Fewest columns with which a chart can be read.
pub const WIDTH_MIN: usize = 40;

/// Most columns that are drawn.
pub const WIDTH_MAX: usize = 1000;

/// Draws a run: a row for each slot of each lane, the idle time as a letter for its cause, the
/// critical path below the lanes that it runs through, and tables of the report's numbers. Names are
/// shown without control characters; no line is wider than `width` as long as names have no
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

/// Shows the difference of two runs: what their makespans' difference consists of, and the ops that
/// changed most.
pub fn difference(diff: &Diff, options: &TextOptions) -> String {
    let options = TextOptions { width: options.width.clamp(WIDTH_MIN, WIDTH_MAX), ..*options };
    difference::draw(diff, &options)
}
