//! The means of a study as a table.

use super::{MeanReport, ScenarioReport};
use crate::cli::table::{Align, table};
use crate::cli::visible::visible;

/// Most rows of a scenario.
const ROWS_MAX: usize = 40;

pub(super) fn text(title: &str, scenarios: &[ScenarioReport]) -> String {
    let mut text = format!("{}\n", visible(title));
    for scenario in scenarios {
        let header = [
            ("", Align::Left),
            ("result", Align::Left),
            ("mean", Align::Right),
            ("from", Align::Right),
            ("to", Align::Right),
        ];
        let rows = scenario.means.iter().take(ROWS_MAX).map(row).collect();
        text.push_str(&format!("\n{}\n{}", visible(&scenario.name), table(header, rows)));
        if let Some(more @ 1..) = scenario.means.len().checked_sub(ROWS_MAX) {
            text.push_str(&format!("and {more} more, in {}-means.csv\n", visible(&scenario.name)));
        }
    }
    text
}

fn row(mean: &MeanReport) -> [String; 5] {
    let number = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), |it| format!("{it:.4}"));
    let values = visible(&mean.values.join(", ")).into_owned();
    [values, mean.result.clone(), number(mean.mean), number(mean.low), number(mean.high)]
}
