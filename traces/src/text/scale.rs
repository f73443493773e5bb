//! Maps times to columns of the chart, and chooses the ticks of its axis.

use super::format::duration;
use super::options::Glyphs;

/// Scale of the time axis.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scale {
    pub(super) start: u64,
    pub(super) length: u64,
    pub(super) columns: usize,
}

impl Scale {
    /// Position of a time, in columns.
    pub(super) fn column(self, at: u64) -> f64 {
        let part = at.saturating_sub(self.start).min(self.length) as f64;
        part * self.columns as f64 / self.length.max(1) as f64
    }

    /// Calls `each` with every column of an interval and the share of the column that it covers. An
    /// interval without length covers part of its column.
    pub(super) fn cover(self, start: u64, end: u64, mut each: impl FnMut(usize, f64)) {
        let (from, to) = (self.column(start), self.column(end));
        let first = (from as usize).min(self.columns - 1);
        for column in first..self.columns {
            let (left, right) = (column as f64, (column + 1) as f64);
            let share = to.min(right) - from.max(left);
            if share <= 0.0 && column > first {
                break;
            }
            each(column, share.max(f64::MIN_POSITIVE));
        }
    }
}

/// The step of 1, 2 or 5 times a power of ten that divides the length into about `ticks` parts.
pub(super) fn round_step(length: u64, ticks: usize) -> u64 {
    let least = length / ticks.max(1) as u64;
    let mut power = 1_u64;
    loop {
        for factor in [1, 2, 5] {
            let step = power.saturating_mul(factor);
            if step >= least.max(1) {
                return step;
            }
        }
        power = power.saturating_mul(10);
    }
}

/// Label of a tick, with no more digits than the step needs.
pub(super) fn tick_name(at: u64, step: u64, glyphs: Glyphs) -> String {
    let (unit, size) = match at {
        0 => return "0".to_owned(),
        1..1_000 => return duration(at as f64, glyphs),
        1_000..1_000_000 if glyphs == Glyphs::Ascii => ("us", 1_000_u64),
        1_000..1_000_000 => ("µs", 1_000),
        1_000_000..1_000_000_000 => ("ms", 1_000_000),
        _ => ("s", 1_000_000_000),
    };
    let mut decimals = 0;
    let mut fine = size;
    while fine > step && decimals < 9 {
        fine /= 10;
        decimals += 1;
    }
    let text = format!("{:.decimals$}", at as f64 / size as f64);
    format!("{text} {unit}")
}
