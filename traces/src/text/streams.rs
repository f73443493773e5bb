//! Says whether streams had their tokens in time, and how many chunks were limited for them.

use super::counted::counted;
use super::format::{duration, wrapped};
use super::options::TextOptions;
use crate::report::Report;

/// Sentences below the table of requests; empty without targets and limited chunks.
pub(super) fn sentences(report: &Report, options: &TextOptions) -> String {
    let lines = [gaps(report, options), limited(report)].into_iter().flatten();
    let wrap = |line: String| wrapped(&line, options.width.saturating_sub(2), options.glyphs);
    let text = lines.map(wrap).collect::<Vec<_>>().join("\n");
    text.lines().map(|line| format!("  {line}\n")).collect()
}

fn gaps(report: &Report, options: &TextOptions) -> Option<String> {
    let requests = &report.requests;
    let late = requests.gaps_late?;
    let with_target = requests.gaps.iter().filter(|gap| gap.gap_target_ms.is_some());
    let all: usize = with_target.map(|gap| gap.count).sum();
    let Some(worst) = requests.worst_gap() else {
        return (all > 0).then(|| format!("token gaps beyond their target: 0 of {all}"));
    };
    let time = |ms: Option<f64>| duration(ms.unwrap_or_default() * 1e6, options.glyphs);
    let (gap, target) = (time(worst.gap_max_ms), time(worst.gap_target_ms));
    let request = worst.request;
    Some(format!(
        "token gaps beyond their target: {late} of {all}, the worst {gap} (request {request}, target {target})"
    ))
}

fn limited(report: &Report) -> Option<String> {
    let count = report.limited.len();
    let due = report.limited.iter().filter(|chunk| chunk.stream.is_some()).count();
    let parts = [(due, "because a stream was due"), (count - due, "kept short for streams")];
    let parts = parts.into_iter().filter(|(count, _)| *count > 0);
    let parts: Vec<String> = parts.map(|(count, why)| format!("{count} {why}")).collect();
    (count > 0).then(|| {
        format!("{} with limited prompt rows: {}", counted(count, "chunk"), parts.join(", "))
    })
}
