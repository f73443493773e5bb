//! What the integers of a format stand for, without scales, and sums over them.

use crate::formats::Quantised;
use std::marker::PhantomData;

/// Added to a number below 2^22 and subtracted again, it rounds that to the nearest integer.
const MAGIC: f32 = 12_582_912.0;

/// The values that the integers of a format stand for, without scales.
pub(super) struct Levels<F>(PhantomData<F>);

impl<F: Quantised> Levels<F> {
    /// Those of a table, in order.
    const SORTED: [f32; 16] = match F::TABLE {
        Some(table) => sorted(table),
        None => [0.0; 16],
    };
    /// The least.
    pub(super) const LOW: f32 = match F::TABLE {
        Some(_) => Self::SORTED[0],
        None => -(F::ZERO_POINT as f32),
    };
    /// The largest.
    pub(super) const HIGH: f32 = match F::TABLE {
        Some(_) => Self::SORTED[15],
        None => ((1 << F::BITS) - 1 - F::ZERO_POINT) as f32,
    };
    /// The distance of the least two.
    pub(super) const GAP: f32 = match F::TABLE {
        Some(_) => Self::SORTED[1] - Self::SORTED[0],
        None => 1.0,
    };

    /// The one that is nearest to a number.
    #[inline(always)]
    pub(super) fn nearest(x: f32) -> f32 {
        if F::TABLE.is_none() {
            return x.clamp(Self::LOW, Self::HIGH) + MAGIC - MAGIC;
        }
        let mut level = Self::LOW;
        for i in 1..16 {
            let middle = (Self::SORTED[i - 1] + Self::SORTED[i]) / 2.0;
            level = if x > middle { Self::SORTED[i] } else { level };
        }
        level
    }

    /// The integer, or the code, that stands for one of them.
    #[inline(always)]
    pub(super) fn code(level: f32) -> u8 {
        let Some(table) = F::TABLE else { return (level - Self::LOW) as u8 };
        table.iter().position(|of| f32::from(*of) == level).unwrap_or(0) as u8
    }
}

const fn sorted(table: &[i8; 16]) -> [f32; 16] {
    let (mut sorted, mut i) = ([0.0; 16], 0);
    while i < 16 {
        let (level, mut at) = (table[i] as f32, i);
        while at > 0 && sorted[at - 1] > level {
            sorted[at] = sorted[at - 1];
            at -= 1;
        }
        sorted[at] = level;
        i += 1;
    }
    sorted
}

/// Sums over the values of a group, and over the levels nearest to them.
pub(super) struct Sums {
    /// Of the levels.
    pub(super) l: f64,
    /// Of their squares.
    pub(super) ll: f64,
    /// Of values times levels.
    pub(super) xl: f64,
}

/// The sums over values minus `shift`, with the levels nearest to these times `inverse`. The number of values is a multiple of 8.
#[inline(always)]
pub(super) fn sums<F: Quantised>(x: &[f32], shift: f32, inverse: f32) -> Sums {
    let (mut l, mut ll, mut xl) = ([0.0; 8], [0.0; 8], [0.0; 8]);
    for x in x.as_chunks::<8>().0 {
        for i in 0..8 {
            let x = x[i] - shift;
            let level = Levels::<F>::nearest(x * inverse);
            l[i] += level;
            ll[i] += level * level;
            xl[i] += x * level;
        }
    }
    Sums { l: sum(l), ll: sum(ll), xl: sum(xl) }
}

/// The sum of squared differences of values and `scale · level + shift`, with the nearest levels.
#[inline(always)]
pub(super) fn error<F: Quantised>(x: &[f32], shift: f32, scale: f32) -> f64 {
    let inverse = inverse_of(scale);
    let mut squares = [0.0; 8];
    for x in x.as_chunks::<8>().0 {
        for i in 0..8 {
            let x = x[i] - shift;
            let rest = x - scale * Levels::<F>::nearest(x * inverse);
            squares[i] += rest * rest;
        }
    }
    sum(squares)
}

fn sum(lanes: [f32; 8]) -> f64 {
    lanes.into_iter().map(f64::from).sum()
}

/// 1 / scale, or 0 if that is not finite.
#[inline(always)]
pub(super) fn inverse_of(scale: f32) -> f32 {
    if scale.abs() < f32::MIN_POSITIVE { 0.0 } else { 1.0 / scale }
}
