//! What each overlap gains alone, and beside the others.

use lapwing_lab::simulate::{CompositeRun, Overlaps};

use super::composite::Run;
use crate::cli::table::{Align, table};

/// Times without an overlap divided by those with it, of each block of runs with and without each overlap.
pub(super) fn text(runs: &[Run]) -> String {
    let mut text = String::new();
    let mut rest = runs;
    while let Some(next) = rest.iter().skip(1).position(|run| run.run.overlaps == Overlaps::NONE) {
        let (block, others) = rest.split_at(next + 1);
        text.push_str(&of_block(block));
        rest = others;
    }
    text + &of_block(rest)
}

fn of_block(runs: &[Run]) -> String {
    let drafts = runs.iter().any(|run| run.run.overlaps.drafts);
    let all = Overlaps { drafts, ..Overlaps::ALL };
    let find = |overlaps: Overlaps| runs.iter().find(|run| run.run.overlaps == overlaps);
    let (Some(none), Some(every)) = (find(Overlaps::NONE), find(all)) else {
        return String::new();
    };
    let kinds = [
        (
            "prompts",
            Overlaps { prompts: true, ..Overlaps::NONE },
            Overlaps { prompts: false, ..all },
        ),
        ("drafts", Overlaps { drafts: true, ..Overlaps::NONE }, Overlaps { drafts: false, ..all }),
        ("cuts", Overlaps { cuts: true, ..Overlaps::NONE }, Overlaps { cuts: false, ..all }),
    ];
    let rows = kinds.into_iter().filter_map(|(name, alone, without)| {
        let (alone, without) = (find(alone)?, find(without)?);
        let of = |value: fn(&CompositeRun) -> f64| {
            let factor = |before: &Run, after: &Run| {
                format!("{:.2} ×", value(&before.run) / value(&after.run).max(1e-9))
            };
            [factor(none, alone), factor(without, every)]
        };
        let [all_alone, all_beside] = of(|run| run.makespan_ms);
        let [ttft_alone, ttft_beside] = of(|run| run.ttft_max_ms);
        let [gap_alone, gap_beside] = of(|run| run.gap_max_ms);
        Some([
            name.to_owned(),
            all_alone,
            all_beside,
            ttft_alone,
            ttft_beside,
            gap_alone,
            gap_beside,
        ])
    });
    let right = |title| (title, Align::Right);
    let header = [
        ("gain of", Align::Left),
        right("all, alone"),
        right("beside the others"),
        right("first token, alone"),
        right("beside the others"),
        right("worst gap, alone"),
        right("beside the others"),
    ];
    format!("\n{}", table(header, rows.collect()))
}
