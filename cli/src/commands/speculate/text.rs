//! Simulated runs as a table.

use super::Run;
use crate::cli::draft_length::Length;
use crate::cli::table::{Align, table};

pub(super) fn text(runs: &[Run]) -> String {
    let right = |title| (title, Align::Right);
    let header = [
        right("acceptance"),
        right("requests"),
        right("target devices"),
        right("draft time"),
        right("length"),
        ("schedule", Align::Left),
        right("speed-up"),
        right("tokens/step"),
        right("accepted"),
        right("draft rows/token"),
        right("wasted rows"),
        right("of the draft model"),
    ];
    let row = |run: &Run| {
        [
            run.acceptance.map_or("by position".to_owned(), |rate| rate.to_string()),
            run.requests.to_string(),
            run.target_devices.to_string(),
            run.draft_time.to_string(),
            Length(run.length).name(),
            run.schedule.to_owned(),
            format!("{:.2}", run.speed_up),
            format!("{:.2}", run.tokens_per_step),
            run.accepted.map_or("-".to_owned(), |share| format!("{:.0} %", 100.0 * share)),
            format!("{:.2}", run.draft_rows),
            run.wasted_rows.to_string(),
            run.draft_rows_wasted.to_string(),
        ]
    };
    table(header, runs.iter().map(row).collect())
}
