//! The report of `plan` as text.

use lapwing_traces::text::counted;

use super::drafts::Drafts;
use super::moment::MomentReport;
use super::{Report, milliseconds};
use crate::cli::table::{Align, table};
use crate::cli::visible::visible;

/// The text of a report.
pub(super) fn of(report: &Report) -> String {
    let bold = anstyle::Style::new().bold();
    let mut text = format!(
        "{bold}{} with '{}'{bold:#}: predicted {} ms{}\n{}{}\n",
        counted(report.length, "token"),
        visible(&report.strategy),
        milliseconds(report.predicted_ms),
        report.graphs.first(report.first_ms, report.cold_ms),
        visible(&report.source),
        report.graphs.text(),
    );
    if report.is_brief {
        text.push_str(
            "other programs make this brief timing vary from start to start: `lapwing profile` measures once for all\n",
        );
    }
    let chunks = report.chunks.iter().map(|chunk| ("chunk", chunk));
    for (what, chunk) in chunks.chain([("decode step", &report.decode)]) {
        let predicted = chunk.predicted_ms.map(|ms| format!(", predicted {ms:.2} ms alone"));
        text.push_str(&format!(
            "\n{bold}{what} ({}, context {}){bold:#}: {}, {} of them cut{}\n  {}\n",
            counted(chunk.rows, "row"),
            chunk.context,
            counted(chunk.stages, "stage"),
            chunk.divided,
            predicted.unwrap_or_default(),
            visible(&chunk.reason),
        ));
        for part in &chunk.parts {
            text.push_str(&format!("  {}\n", visible(part)));
        }
        for transfers in &chunk.transfers {
            text.push_str(&format!("  {}\n", visible(&transfers.text)));
        }
    }
    text.extend(report.beside_stream.iter().map(|beside| beside.text(report.predicted_ms)));
    if let Some(explained) = &report.explained {
        let rows = explained.candidates.iter().map(|candidate| {
            [
                candidate.strategy.clone(),
                milliseconds(candidate.predicted_ms),
                milliseconds(candidate.busiest_ms),
                candidate.chunks.map_or("–".to_owned(), |chunks| chunks.to_string()),
                candidate.why_not.clone().unwrap_or_default(),
            ]
        });
        let header = [
            ("strategy", Align::Left),
            ("predicted, ms", Align::Right),
            ("busiest device, ms", Align::Right),
            ("chunks", Align::Right),
            ("excluded because", Align::Left),
        ];
        let rows = table(header, rows.collect());
        text.push_str(&format!("\n{rows}\n{}\n", visible(&explained.why)));
        text.extend(explained.drafts.iter().map(Drafts::text));
    }
    text.extend(report.moment.iter().map(MomentReport::text));
    text
}
