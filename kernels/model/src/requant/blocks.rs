//! Quantises rows of blocks of 32 values, by the rules stated at [`Requant`]. The divisor is the f32 scale
//! before its rounding to binary16, as in files quantised by llama.cpp.

use super::form::{Integers, Requant};
use super::search;
use crate::binary16;

/// Values per block of every format here that is not searched.
pub(crate) const BLOCK: usize = 32;

/// The values of a block.
type Block = [f32; BLOCK];

/// Bits of an f32 without its sign. As integers they have the order of magnitudes, with infinity and
/// NaN above all others.
const MAGNITUDE: u32 = 0x7fff_ffff;
/// Magnitude bits of infinity: everything from here on is not finite.
const INFINITE: u32 = 0x7f80_0000;

/// Quantises the row `x` to the stored blocks `to`. Returns false, with `to` undefined, if a
/// value is not finite or a scale or minimum is too large for binary16.
///
/// # Panics
/// If the size of `to` does not match, or the row is not whole groups.
pub fn quantize(format: Requant, x: &[f32], to: &mut [u8]) -> bool {
    let row_bytes = format.dtype().row_bytes(x.len());
    assert_eq!(row_bytes, Some(to.len()), "blocks of {} values", x.len());
    let group = format.group_len(x.len());
    let group = group.unwrap_or_else(|| panic!("{} values are not whole groups", x.len())) / BLOCK;
    let blocks = x.as_chunks().0;
    match format.integers {
        Integers::Int8 => each(blocks, group, to, Symmetric::int8, Symmetric::write_int8),
        Integers::Int4Min => each(blocks, group, to, WithMin::of, WithMin::write),
        Integers::Int4 => each(blocks, group, to, Symmetric::int4, Symmetric::write_int4),
        Integers::Searched(dtype) => search::row(dtype, x, to),
    }
}

/// Quantises blocks in groups of `group` blocks. `scale` computes the scale of a group, and whether the
/// group can be stored; `write` stores a block with it.
fn each<const BYTES: usize, S>(
    x: &[Block],
    group: usize,
    to: &mut [u8],
    scale: impl Fn(&[Block]) -> (S, bool),
    write: impl Fn(&S, &Block, &mut [u8; BYTES]),
) -> bool {
    let groups = x.chunks(group).zip(to.as_chunks_mut().0.chunks_mut(group));
    groups.fold(true, |sound, (x, to)| {
        let (scale, is_sound) = scale(x);
        x.iter().zip(to).for_each(|(x, to)| write(&scale, x, to));
        sound & is_sound
    })
}

/// Magnitude bits of the value of largest magnitude.
fn largest(x: &[Block]) -> u32 {
    x.iter().flatten().fold(0, |most, x| most.max(x.to_bits() & MAGNITUDE))
}

/// A scale or minimum as binary16, and whether that is finite.
fn half(value: f32) -> ([u8; 2], bool) {
    let half = binary16::from_f32(value);
    (half.to_le_bytes(), half & 0x7c00 != 0x7c00)
}

/// 1 / d, or 0 if d is 0.
fn inverse(d: f32) -> f32 {
    if d == 0.0 { 0.0 } else { 1.0 / d }
}

/// The scale of a group without a minimum.
struct Symmetric {
    stored: [u8; 2],
    inverse: f32,
}

impl Symmetric {
    fn of(d: f32, largest: u32) -> (Symmetric, bool) {
        let (stored, is_finite) = half(d);
        (Symmetric { stored, inverse: inverse(d) }, is_finite && largest < INFINITE)
    }

    fn int8(x: &[Block]) -> (Symmetric, bool) {
        let largest = largest(x);
        Symmetric::of(f32::from_bits(largest) / 127.0, largest)
    }

    fn int4(x: &[Block]) -> (Symmetric, bool) {
        let largest = largest(x);
        let extreme = x.iter().flatten().find(|x| x.to_bits() & MAGNITUDE == largest);
        // Adding 0 turns −0 into 0.
        Symmetric::of(extreme.map_or(0.0, |extreme| extreme + 0.0) / -8.0, largest)
    }

    fn write_int8(&self, x: &Block, to: &mut [u8; 34]) {
        let [d0, d1, q @ ..] = to;
        (*d0, *d1) = self.stored.into();
        for (q, x) in q.iter_mut().zip(x) {
            *q = nearest((x * self.inverse).clamp(-127.0, 127.0)) as u8;
        }
    }

    fn write_int4(&self, x: &Block, to: &mut [u8; 18]) {
        let [d0, d1, q @ ..] = to;
        (*d0, *d1) = self.stored.into();
        nibbles(x, q, |x| x * self.inverse + 8.5);
    }
}

/// Scale and minimum of a group.
struct WithMin {
    scale: [u8; 2],
    minimum: [u8; 2],
    min: f32,
    inverse: f32,
}

impl WithMin {
    fn of(x: &[Block]) -> (WithMin, bool) {
        let first = x[0][0];
        let extremes = |(min, max): (f32, f32), x: &f32| (min.min(*x), max.max(*x));
        let (min, max) = x.iter().flatten().fold((first, first), extremes);
        let d = (max - min) / 15.0;
        let ((scale, is_scale), (minimum, is_minimum)) = (half(d), half(min));
        let is_sound = is_scale && is_minimum && largest(x) < INFINITE;
        (WithMin { scale, minimum, min, inverse: inverse(d) }, is_sound)
    }

    fn write(&self, x: &Block, to: &mut [u8; 20]) {
        let [d0, d1, m0, m1, q @ ..] = to;
        (*d0, *d1) = self.scale.into();
        (*m0, *m1) = self.minimum.into();
        nibbles(x, q, |x| (x - self.min) * self.inverse + 0.5);
    }
}

/// The nearest integer; ties are rounded away from zero.
fn nearest(x: f32) -> i32 {
    let whole = x as i32;
    let rest = x - whole as f32;
    whole + i32::from(rest >= 0.5) - i32::from(rest <= -0.5)
}

/// Packs 4-bit integers: the first 16 values into low nibbles, the others into high ones. `step` maps
/// a value to a number that is truncated and clamped to 0 ..= 15.
fn nibbles(x: &Block, to: &mut [u8; BLOCK / 2], step: impl Fn(f32) -> f32) {
    let q = x.map(|x| (step(x) as i32).clamp(0, 15) as u8);
    for (i, to) in to.iter_mut().enumerate() {
        *to = q[i] | q[i + BLOCK / 2] << 4;
    }
}

#[cfg(test)]
mod tests;
