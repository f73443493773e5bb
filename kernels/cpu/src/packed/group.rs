//! One group of a tile, unpacked in plain Rust.

use crate::packed::layout::{GROUP, LINE, TILE, scale_bytes};
use crate::packed::tile::TileBytes;
use lapwing_model::binary16;
use lapwing_model::formats::block::{minifloat, power};
use lapwing_model::formats::{FormatKind, Scales};

/// A group, unpacked: 32 columns × 16 output channels, `value = scale · (q − zero point) + min`
/// with q unsigned. With scales of half groups, the second scale and minimum are those of the last 16 columns; otherwise
/// they are 0. Minimums are 0 for formats without them.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(crate) struct Group {
    /// `[8 quads][16 channels][4 columns]`.
    pub(crate) q: [[u8; LINE]; 8],
    pub(crate) scale: [[f32; TILE]; 2],
    pub(crate) min: [[f32; TILE]; 2],
}

impl Group {
    pub(crate) fn new() -> Group {
        Group { q: [[0; LINE]; 8], scale: [[0.0; TILE]; 2], min: [[0.0; TILE]; 2] }
    }

    /// Unpacks group `index` of a quantised tile.
    #[inline(always)]
    pub(crate) fn read(&mut self, tile: &TileBytes<'_>, index: usize) {
        self.read_values(tile, index);
        self.read_scales(tile, index, halves);
    }

    /// Unpacks the integers of group `index`.
    #[inline(always)]
    pub(crate) fn read_values(&mut self, tile: &TileBytes<'_>, index: usize) {
        let lines = tile.layout.lines;
        let from = &tile.values[index * lines * LINE..][..lines * LINE];
        match (from.as_chunks::<LINE>().0, lines) {
            (from, 8) => self.q.copy_from_slice(from),
            ([from @ .., fifth], 5) => {
                self.nibbles(from);
                for (j, q) in self.q.iter_mut().enumerate() {
                    for i in 0..LINE {
                        q[i] |= (fifth[i] >> j & 1) << 4;
                    }
                }
            }
            ([from @ .., low, high], 6) => {
                self.nibbles(from);
                for (j, q) in self.q.iter_mut().enumerate() {
                    let top = if j < 4 { low } else { high };
                    for i in 0..LINE {
                        q[i] |= (top[i] >> (2 * (j % 4)) & 3) << 4;
                    }
                }
            }
            (lines, 2 | 3) => {
                for (j, q) in self.q.iter_mut().enumerate() {
                    for i in 0..LINE {
                        q[i] = few_bits(lines.len(), j, |line| lines[line][i]);
                    }
                }
            }
            (from, _) => self.nibbles(from),
        }
        if let Some(table) = &tile.layout.table {
            self.q.as_flattened_mut().iter_mut().for_each(|q| *q = table[usize::from(*q & 15)]);
        }
    }

    #[inline(always)]
    fn nibbles(&mut self, from: &[[u8; LINE]]) {
        let (low, high) = self.q.split_at_mut(4);
        for ((low, high), from) in low.iter_mut().zip(high).zip(from) {
            for i in 0..LINE {
                (low[i], high[i]) = (from[i] & 15, from[i] >> 4);
            }
        }
    }

    /// Unpacks the scales of group `index`. `halves` converts the first 16 binary16 of its argument.
    #[inline(always)]
    pub(crate) fn read_scales(
        &mut self,
        tile: &TileBytes<'_>,
        index: usize,
        halves: impl Fn(&[u8]) -> [f32; TILE],
    ) {
        let kind = tile.layout.kind;
        let (block, g) = (index / kind.groups(), index % kind.groups());
        let from = &tile.scales[block * scale_bytes(kind)..][..scale_bytes(kind)];
        let Group { scale: [scale, second], min: [min, second_min], .. } = self;
        (*second, *min, *second_min) = ([0.0; TILE], [0.0; TILE], [0.0; TILE]);
        let signed = |at: usize, d: &[f32; TILE]| -> [f32; TILE] {
            let factors = &from[at * TILE..][..TILE];
            std::array::from_fn(|i| d[i] * f32::from(factors[i].cast_signed()))
        };
        match kind {
            Scales::None => *scale = [0.0; TILE],
            Scales::Plain => *scale = halves(from),
            Scales::Minimum => (*scale, *min) = (halves(from), halves(&from[2 * TILE..])),
            Scales::Super => {
                (*scale, *min) = (halves(from), halves(&from[2 * TILE..]));
                for i in 0..TILE {
                    scale[i] *= f32::from(from[(4 + g) * TILE + i]);
                    min[i] = -(min[i] * f32::from(from[(12 + g) * TILE + i]));
                }
            }
            Scales::Halves => {
                let d = halves(&from[16 * TILE..]).map(|d| d * tile.layout.unit);
                (*scale, *second) = (signed(2 * g, &d), signed(2 * g + 1, &d));
            }
            Scales::SuperHalves => {
                let (d, m) = (halves(from), halves(&from[2 * TILE..]));
                let factors = from[(4 + 2 * g) * TILE..].as_chunks::<TILE>().0;
                for i in 0..TILE {
                    let [first, last] = [factors[0][i], factors[1][i]];
                    (scale[i], min[i]) =
                        (d[i] * f32::from(first & 15), -(m[i] * f32::from(first >> 4)));
                    (second[i], second_min[i]) =
                        (d[i] * f32::from(last & 15), -(m[i] * f32::from(last >> 4)));
                }
            }
            Scales::Signed => {
                let d = halves(&from[8 * TILE..]).map(|d| d * tile.layout.unit);
                *scale = signed(g, &d);
            }
            Scales::Power => *scale = std::array::from_fn(|i| power(from[i])),
            Scales::Minifloats => {
                *scale = std::array::from_fn(|i| minifloat(from[i]));
                *second = std::array::from_fn(|i| minifloat(from[TILE + i]));
            }
        }
    }
}

/// An integer of 2 or 3 bits of quad `j`, from its byte of each line.
#[inline(always)]
fn few_bits(lines: usize, j: usize, byte: impl Fn(usize) -> u8) -> u8 {
    let last = j / 4;
    match (lines, j % 4) {
        (2, i) => byte(i / 2) >> (4 * last + 2 * (i % 2)) & 3,
        (_, 3) => byte(2 * last) >> 6 | (byte(1) >> (6 + last) & 1) << 2,
        (_, i) => byte(i) >> (3 * last) & 7,
    }
}

/// The first 16 binary16.
#[inline(always)]
fn halves(from: &[u8]) -> [f32; TILE] {
    let mut values = [0.0; TILE];
    for (to, from) in values.iter_mut().zip(from[..2 * TILE].as_chunks::<2>().0) {
        *to = binary16::to_f32(u16::from_le_bytes(*from));
    }
    values
}

/// Scales and minimums of channel `i` in group `index`, of both halves.
#[inline(always)]
fn scales(tile: &TileBytes<'_>, index: usize, i: usize) -> [(f32, f32); 2] {
    let kind = tile.layout.kind;
    let (block, g) = (index / kind.groups(), index % kind.groups());
    let from = &tile.scales[block * scale_bytes(kind)..][..scale_bytes(kind)];
    let half = |at: usize| {
        let bytes = [from[at + 2 * i], from[at + 2 * i + 1]];
        binary16::to_f32(u16::from_le_bytes(bytes))
    };
    let factor = |at: usize| f32::from(from[at * TILE + i]);
    let signed = |at: usize| f32::from(from[at * TILE + i].cast_signed());
    let unit = tile.layout.unit;
    let of_group = match kind {
        Scales::None => (0.0, 0.0),
        Scales::Plain => (half(0), 0.0),
        Scales::Minimum => (half(0), half(2 * TILE)),
        Scales::Super => (half(0) * factor(4 + g), -(half(2 * TILE) * factor(12 + g))),
        Scales::Halves => {
            return [0, 1].map(|h| (unit * half(16 * TILE) * signed(2 * g + h), 0.0));
        }
        Scales::SuperHalves => {
            let (d, m) = (half(0), half(2 * TILE));
            return [2 * g, 2 * g + 1].map(|h| {
                let both = from[(4 + h) * TILE + i];
                (d * f32::from(both & 15), -(m * f32::from(both >> 4)))
            });
        }
        Scales::Signed => (unit * half(8 * TILE) * signed(g), 0.0),
        Scales::Power => (power(from[i]), 0.0),
        Scales::Minifloats => return [0, 1].map(|h| (minifloat(from[h * TILE + i]), 0.0)),
    };
    [of_group; 2]
}

/// Dequantises channel `lane` of a tile.
pub(crate) fn channel(tile: &TileBytes<'_>, lane: usize, to: &mut [f32]) {
    let layout = tile.layout;
    let format = match &layout.dtype.info().kind {
        FormatKind::Blocks(format) => format,
        FormatKind::Floats(row) => {
            let bytes = layout.dtype.block_bytes();
            let stored = tile.values.chunks_exact(bytes).skip(lane).step_by(TILE);
            to.iter_mut().zip(stored).for_each(|(to, from)| row(from, std::slice::from_mut(to)));
            return;
        }
    };
    let offset = format.zero_point as f32;
    let groups = tile.values.chunks_exact(layout.lines * LINE);
    for (index, (lines, to)) in groups.zip(to.chunks_exact_mut(GROUP)).enumerate() {
        let halves = scales(tile, index, lane);
        for (col, to) in to.iter_mut().enumerate() {
            let (scale, min) = halves[col / 16];
            let q = value(lines, layout.lines, lane, col);
            let q = f32::from(layout.table.map_or(q, |table| table[usize::from(q & 15)]));
            *to = scale * (q - offset) + min;
        }
    }
}

/// One integer of a group, as [`Group::read`] unpacks it.
#[inline(always)]
fn value(from: &[u8], lines: usize, lane: usize, col: usize) -> u8 {
    let (j, at) = (col / 4, lane * 4 + col % 4);
    let line = |line: usize| from[line * LINE + at];
    let nibble = || line(j % 4) >> (4 * (j / 4)) & 15;
    match lines {
        8 => line(j),
        5 => nibble() | (line(4) >> j & 1) << 4,
        6 => nibble() | (line(4 + j / 4) >> (2 * (j % 4)) & 3) << 4,
        2 | 3 => few_bits(lines, j, line),
        _ => nibble(),
    }
}
