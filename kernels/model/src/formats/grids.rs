//! Grids: formats whose integers come in runs of 8 or 4 values, each of which is one entry of a table.
//!
//! An entry of 8 values has indices of 2 bits, one of 4 values indices of 3 bits. A code of the format is such an index and, above it,
//! the sign. Its table has the magnitudes, and then their opposites.

use std::sync::OnceLock;

pub(super) mod iq1;
pub(super) mod iq2_s;
pub(super) mod iq2_xs;
pub(super) mod iq2_xxs;
pub(super) mod iq3_s;
pub(super) mod iq3_xxs;

/// Magnitudes of the grids of IQ2_XXS, IQ2_XS and IQ2_S.
pub(super) const OF_IQ2: &[i8] = &[8, 25, 43];

/// The table of a grid of entries of `n` values.
pub(super) const fn signed_table(magnitudes: &[i8], n: usize) -> [i8; 16] {
    let (mut to, mut i) = ([0; 16], 0);
    while i < magnitudes.len() {
        (to[i], to[i + (1 << bits(n))]) = (magnitudes[i], -magnitudes[i]);
        i += 1;
    }
    to
}

/// Bits of an index in entries of `N` values.
const fn bits(n: usize) -> usize {
    if n == 8 { 2 } else { 3 }
}

/// Index `i` of an entry of `n` values.
#[inline(always)]
pub(super) fn index(entry: u16, n: usize, i: usize) -> u8 {
    (entry >> (bits(n) * i)) as u8 & ((1 << bits(n)) - 1)
}

/// The codes of an entry of `N` values. The signs are bits, from the lowest on.
#[inline(always)]
pub(super) fn codes<const N: usize>(entry: u16, signs: u8, to: &mut [u8]) {
    for (i, to) in to.iter_mut().take(N).enumerate() {
        *to = index(entry, N, i) | (signs >> i & 1) << bits(N);
    }
}

/// 7 signs, and the eighth that makes their number even.
#[inline(always)]
pub(super) fn even_signs(seven: u32) -> u8 {
    let seven = seven as u8 & 127;
    seven | (seven.count_ones() as u8 & 1) << 7
}

/// A grid for the quantisation of blocks.
pub(super) struct Grid {
    entries: &'static [u16],
    /// What the indices stand for, ascending.
    values: &'static [i8],
    /// Values of an entry.
    n: usize,
    /// The nearest entry for each sequence of `n` values.
    nearest: OnceLock<Vec<u16>>,
}

impl Grid {
    pub(super) const fn new(entries: &'static [u16], values: &'static [i8], n: usize) -> Grid {
        Grid { entries, values, n, nearest: OnceLock::new() }
    }

    /// Which value is nearest to `x`.
    fn nearest_value(&self, x: f32) -> usize {
        let distance = |i: &usize| (f32::from(self.values[*i]) - x).abs();
        let all = 0..self.values.len();
        all.min_by(|a, b| distance(a).total_cmp(&distance(b))).unwrap_or(0)
    }

    /// The entry that is nearest to `x`, each of which is rounded to a value first.
    pub(super) fn nearest(&self, x: &[f32]) -> usize {
        let radix = self.values.len();
        let nearest = self.nearest.get_or_init(|| {
            let sequences = 0..radix.pow(self.n as u32);
            sequences.map(|sequence| self.nearest_entry(sequence)).collect()
        });
        let rounded = x.iter().rev().map(|x| self.nearest_value(*x));
        usize::from(nearest[rounded.fold(0, |sequence, digit| sequence * radix + digit)])
    }

    /// The entry that is nearest to a sequence of values, whose indices are its digits.
    fn nearest_entry(&self, sequence: usize) -> u16 {
        let radix = self.values.len();
        let digit = |i: usize| sequence / radix.pow(i as u32) % radix;
        let wanted: Vec<i32> = (0..self.n).map(|i| i32::from(self.values[digit(i)])).collect();
        let distance = |entry: u16| {
            let value = |i| i32::from(self.values[usize::from(index(entry, self.n, i))]);
            wanted.iter().enumerate().map(|(i, x)| (value(i) - x).pow(2)).sum::<i32>()
        };
        let entries = (0..self.entries.len()).min_by_key(|at| distance(self.entries[*at]));
        entries.unwrap_or(0) as u16
    }
}

/// The signs of a run, as bits. Where their number must be even and is odd, the smallest value has the wrong one.
pub(super) fn signs(x: &[f32], is_even: bool) -> u8 {
    let signs = x.iter().enumerate().fold(0, |bits, (i, x)| bits | u8::from(*x < 0.0) << i);
    if !is_even || signs.count_ones() % 2 == 0 {
        return signs;
    }
    let smallest = (0..x.len()).min_by(|a, b| x[*a].abs().total_cmp(&x[*b].abs()));
    signs ^ 1 << smallest.unwrap_or(0)
}

/// The binary16 scale of a block and the 4 or 3 bits `s` of each of its spans, by the largest magnitudes of the spans.
pub(super) struct OddScales {
    /// The scale.
    pub(super) d: half::f16,
    /// The bits of each span.
    pub(super) s: Vec<u8>,
    /// The scale of each span: `unit · d · (2 · s + 1)`.
    pub(super) spans: Vec<f32>,
}

/// Scales `unit · d · (2 · s + 1)` of spans of a block, so that the largest magnitude of each is about `largest` steps.
pub(super) fn odd_scales(x: &[f32], span: usize, limits: Limits) -> OddScales {
    let Limits { unit, s_max, largest } = limits;
    let wanted: Vec<f32> = x.chunks(span).map(|x| super::naive::magnitude(x) / largest).collect();
    let top = f32::from(2 * s_max + 1);
    let d = half::f16::from_f32(wanted.iter().fold(0.0f32, |m, w| m.max(*w)) / (top * unit));
    let one = d.to_f32() * unit;
    let bits = |w: f32| {
        let s = if one == 0.0 { 0.0 } else { ((w / one - 1.0) / 2.0).round() };
        s.clamp(0.0, f32::from(s_max)) as u8
    };
    let s: Vec<u8> = wanted.into_iter().map(bits).collect();
    let spans = s.iter().map(|s| one * f32::from(2 * s + 1)).collect();
    OddScales { d, s, spans }
}

/// Bounds of scales.
pub(super) struct Limits {
    /// What the stored scale is times.
    pub(super) unit: f32,
    /// The largest stored bits of a span.
    pub(super) s_max: u8,
    /// The largest value of the table.
    pub(super) largest: f32,
}

/// `x / scale`, or 0.
pub(super) fn scaled(x: &[f32], scale: f32) -> Vec<f32> {
    x.iter().map(|x| if scale == 0.0 { 0.0 } else { x / scale }).collect()
}
