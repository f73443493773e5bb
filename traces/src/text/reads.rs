//! Shows as a table how long steps waited for data from a disk.

use super::format::Align::{Left, Right};
use super::format::{bytes, duration, or_dash, percent, table};
use super::options::TextOptions;
use crate::report::{ReadReport, Report};

/// Steps by lane and name; empty if none has read.
pub(super) fn table_of(report: &Report, options: &TextOptions) -> String {
    let header = [
        ("lane", Left),
        ("step", Left),
        ("steps", Right),
        ("that read", Right),
        ("time", Right),
        ("reading", Right),
        ("share", Right),
        ("bytes", Right),
        ("GB/s", Right),
    ];
    let time = |nanos: u64| duration(nanos as f64, options.glyphs);
    let row = |reads: &ReadReport| {
        [
            reads.lane.clone(),
            reads.step.clone(),
            reads.steps.to_string(),
            reads.reading.to_string(),
            time(reads.busy_ns),
            time(reads.read_ns),
            percent(reads.share),
            bytes(reads.bytes),
            or_dash(reads.gb_per_s.map(|rate| format!("{rate:.2}"))),
        ]
    };
    let rows: Vec<_> = report.reads.iter().map(row).collect();
    table("Waiting for data from the disk", header, &rows, options)
}
