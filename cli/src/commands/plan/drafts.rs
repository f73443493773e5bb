//! The lengths of drafts in the report of `plan --explain`.

use lapwing_engine::draft::DraftExplanation;
use serde::Serialize;

use crate::cli::table::{Align, table};
use crate::cli::visible::visible;

/// Why drafts have their length.
#[derive(Serialize)]
pub(super) struct Drafts {
    drafter: String,
    /// Time of drafting a token; `null` if the speed of a device is unknown.
    draft_ms: Option<f64>,
    /// Times of passes of 1, 2, … rows.
    verify_ms: Vec<f64>,
    lengths: Vec<Length>,
    why: String,
}

#[derive(Serialize)]
struct Length {
    acceptance: f64,
    length: usize,
    speed_up: f64,
    pays: bool,
}

impl Drafts {
    pub(super) fn new(explained: DraftExplanation) -> Drafts {
        let lengths = explained.lengths.iter().map(|(acceptance, best)| Length {
            acceptance: *acceptance,
            length: best.length,
            speed_up: best.gain,
            pays: best.pays(),
        });
        Drafts {
            lengths: lengths.collect(),
            why: explained.to_string(),
            draft_ms: (!explained.verify.is_empty()).then(|| super::ms(explained.draft)),
            verify_ms: explained.verify.iter().copied().map(super::ms).collect(),
            drafter: explained.drafter,
        }
    }

    /// A table of lengths, and the reason.
    pub(super) fn text(&self) -> String {
        let rows = self.lengths.iter().map(|length| {
            [
                format!("{:.0} %", 100.0 * length.acceptance),
                length.length.to_string(),
                format!("{:.2}", length.speed_up),
                if length.pays { "yes" } else { "no" }.to_owned(),
            ]
        });
        let header = [
            ("accepted", Align::Right),
            ("best length of a draft", Align::Right),
            ("predicted speed-up", Align::Right),
            ("drafts", Align::Left),
        ];
        let rows: Vec<_> = rows.collect();
        let lengths = if rows.is_empty() { String::new() } else { table(header, rows) + "\n" };
        format!("\n{lengths}{}\n", visible(&self.why))
    }
}
