//! Says whether streams had their tokens in time, how many chunks were limited for them, and which routes chunks took.

use super::counted::counted;
use super::format::{duration, wrapped};
use super::options::TextOptions;
use crate::report::Report;

/// Sentences below the table of requests; empty without targets and limited chunks.
pub(super) fn sentences(report: &Report, options: &TextOptions) -> String {
    let lines = [gaps(report, options), limited(report), routed(report, options)];
    let lines = lines.into_iter().flatten();
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
    let count = report.decisions.limited.len();
    let due = report.decisions.limited.iter().filter(|chunk| chunk.stream.is_some()).count();
    let parts = [(due, "because a stream was due"), (count - due, "kept short for streams")];
    let parts = parts.into_iter().filter(|(count, _)| *count > 0);
    let parts: Vec<String> = parts.map(|(count, why)| format!("{count} {why}")).collect();
    (count > 0).then(|| {
        format!("{} with limited prompt rows: {}", counted(count, "chunk"), parts.join(", "))
    })
}

fn routed(report: &Report, options: &TextOptions) -> Option<String> {
    let all = &report.decisions.routed;
    let due = all.iter().filter(|chunk| chunk.is_due).count();
    let changed: Vec<_> = all.iter().filter(|it| it.end_ms < it.alone_end_ms).collect();
    let gained: f64 = changed.iter().map(|it| it.alone_end_ms - it.end_ms).sum();
    let mut routes: Vec<&str> = changed.iter().map(|chunk| &*chunk.route).collect();
    routes.sort_unstable();
    routes.dedup();
    let passed = format!("{due} passed others, because streams were due");
    let other = || {
        let mean = duration(gained / changed.len() as f64 * 1e6, options.glyphs);
        let (count, routes) = (changed.len(), routes.join(", "));
        format!("{count} took another route ({routes}), to end {mean} earlier on average")
    };
    let parts = [(due > 0).then_some(passed), (!changed.is_empty()).then(other)];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    let chunks = counted(all.len(), "chunk");
    (!parts.is_empty()).then(|| format!("{chunks} with a choice of routes: {}", parts.join(", ")))
}
