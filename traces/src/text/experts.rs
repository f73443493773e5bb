//! Shows as a table how evenly rows were divided between experts.

use super::format::Align::{Left, Right};
use super::format::{percent, table};
use super::options::{Glyphs, TextOptions};
use crate::report::{ExpertReport, Report};

/// Layers with experts; empty if none was counted.
pub(super) fn table_of(report: &Report, options: &TextOptions) -> String {
    let header = [
        ("layer", Left),
        ("experts", Right),
        ("with rows", Right),
        ("rows", Right),
        ("busiest", Right),
        ("least", Right),
        ("half of the rows in", Right),
        ("rows, the busiest first", Left),
    ];
    let row = |layer: &ExpertReport| {
        let of = if layer.model == 0 { "" } else { "draft " };
        [
            format!("{of}{}", layer.layer),
            layer.experts.to_string(),
            layer.with_rows.to_string(),
            layer.rows.to_string(),
            format!("{}: {}", layer.busiest, percent(layer.busiest_share)),
            format!("{}: {}", layer.least, percent(layer.least_share)),
            layer.half_in.to_string(),
            bars(&layer.tenths, options.glyphs),
        ]
    };
    let rows: Vec<_> = report.experts.iter().take(options.rows_max).map(row).collect();
    let title = match report.experts.len().checked_sub(options.rows_max).filter(|more| *more > 0) {
        Some(more) => format!("Experts ({more} more in the JSON report)"),
        None => "Experts".to_owned(),
    };
    table(&title, header, &rows, options)
}

/// A bar for each share, as high as it is beside the largest: in ASCII a digit from 0 to 8.
pub(crate) fn bars(shares: &[f64], glyphs: Glyphs) -> String {
    let levels = match glyphs {
        Glyphs::Unicode => [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'],
        Glyphs::Ascii => ['0', '1', '2', '3', '4', '5', '6', '7', '8'],
    };
    let largest = shares.iter().copied().fold(0.0, f64::max);
    let level = |share: &f64| match largest > 0.0 {
        true => levels[((8.0 * share / largest).ceil() as usize).min(8)],
        false => levels[0],
    };
    shares.iter().map(level).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_as_high_as_shares() {
        assert_eq!(bars(&[0.5, 0.25, 0.01, 0.0], Glyphs::Unicode), "█▄▁ ");
        assert_eq!(bars(&[0.5, 0.25, 0.01, 0.0], Glyphs::Ascii), "8410");
        assert_eq!(bars(&[0.0, 0.0], Glyphs::Ascii), "00");
    }
}
