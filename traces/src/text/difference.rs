//! Shows the difference of two runs as tables.

use super::format::Align::{Left, Right};
use super::format::{bold, duration, percent, table};
use super::options::TextOptions;
use crate::analysis::diff::Diff;

pub(super) fn draw(diff: &Diff, options: &TextOptions) -> String {
    let time = |nanos: u64| duration(nanos as f64, options.glyphs);
    let delta = |nanos: i64| signed(nanos, options);
    let share = match diff.a_ns {
        0 => String::new(),
        a => format!(" ({:+.1} %)", diff.delta_ns as f64 / a as f64 * 100.0),
    };
    let makespan = format!(
        "makespan {} -> {}, {}{share}",
        time(diff.a_ns),
        time(diff.b_ns),
        delta(diff.delta_ns)
    );
    let mut text = format!("{}\n", bold(&makespan, options));
    let header = [
        ("lane", Left),
        ("what", Left),
        ("op", Left),
        ("difference", Right),
        ("share", Right),
        ("first", Right),
        ("second", Right),
    ];
    let steps = diff.waterfall.iter().filter(|step| step.delta_ns != 0);
    let rows: Vec<_> = steps
        .take(options.rows_max)
        .map(|step| {
            let share = match diff.delta_ns {
                0 => "-".to_owned(),
                whole => percent(step.delta_ns as f64 / whole as f64),
            };
            let [lane, cause, op] = [&step.lane, &step.cause, &step.op].map(String::clone);
            [lane, cause, op, delta(step.delta_ns), share, time(step.a_ns), time(step.b_ns)]
        })
        .collect();
    text.push_str(&table(
        "Breakdown of the difference by the critical paths",
        header,
        &rows,
        options,
    ));
    let header = [
        ("op", Left),
        ("lane", Left),
        ("difference", Right),
        ("first", Right),
        ("second", Right),
        ("in both", Right),
        ("only first", Right),
        ("only second", Right),
    ];
    let ops = diff.ops.iter().filter(|op| op.delta_ns != 0 || op.only_a + op.only_b > 0);
    let rows: Vec<_> = ops
        .take(options.rows_max)
        .map(|op| {
            let counts = [op.matched, op.only_a, op.only_b].map(|count| count.to_string());
            let [matched, only_a, only_b] = counts;
            let (name, lane) = (op.name.clone(), op.lane.clone());
            [name, lane, delta(op.delta_ns), time(op.a_ns), time(op.b_ns), matched, only_a, only_b]
        })
        .collect();
    text.push_str(&table("Ops with a difference", header, &rows, options));
    text
}

fn signed(nanos: i64, options: &TextOptions) -> String {
    let sign = if nanos > 0 { "+" } else { "" };
    format!("{sign}{}", duration(nanos as f64, options.glyphs))
}
