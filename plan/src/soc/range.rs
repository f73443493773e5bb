//! The valid values of a parameter.

use std::fmt;

/// Valid values of a parameter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Range {
    /// A rate: at least [`Range::RATE_MIN`] of its unit. Infinity is valid.
    Rate,
    /// From the first value to the second, both included.
    Between(f64, f64),
    /// A whole number from the first value to the second, both included.
    Whole(u32, u32),
}

use Range::{Between, Rate, Whole};

impl Range {
    /// Minimum rate, in the unit of the parameter.
    pub const RATE_MIN: f64 = 1e-6;

    /// Whether the value is valid.
    pub fn contains(self, value: f64) -> bool {
        match self {
            Rate => value >= Range::RATE_MIN,
            Between(from, to) => (from..=to).contains(&value),
            Whole(from, to) => {
                value.fract() == 0.0 && (f64::from(from)..=f64::from(to)).contains(&value)
            }
        }
    }

    /// The valid value nearest to `value`.
    pub(super) fn nearest(self, value: f64) -> f64 {
        match self {
            Rate => value.max(Range::RATE_MIN),
            Between(from, to) => value.clamp(from, to),
            Whole(from, to) => value.round().clamp(f64::from(from), f64::from(to)),
        }
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Rate => write!(f, "{} or more", Range::RATE_MIN),
            Between(from, to) => write!(f, "between {from} and {to}"),
            Whole(from, to) => write!(f, "a whole number between {from} and {to}"),
        }
    }
}
