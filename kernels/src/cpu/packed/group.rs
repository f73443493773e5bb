//! One group of a tile, unpacked in plain Rust.

use crate::binary16;
use crate::cpu::packed::layout::{GROUP, LINE, Scales, TILE, zero_point};
use crate::cpu::packed::tile::TileBytes;
use crate::quant::DType;

/// A group, unpacked: 32 columns × 16 output channels, `value = scale · (q − zero point) + min`
/// with q unsigned. With scales of half groups, the second scale is that of the last 16 columns.
/// The minimum is 0 for formats without one.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(crate) struct Group {
    /// `[8 quads][16 channels][4 columns]`.
    pub(crate) q: [[u8; LINE]; 8],
    pub(crate) scale: [[f32; TILE]; 2],
    pub(crate) min: [f32; TILE],
}

impl Group {
    pub(crate) fn new() -> Group {
        Group { q: [[0; LINE]; 8], scale: [[0.0; TILE]; 2], min: [0.0; TILE] }
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
            (from, _) => self.nibbles(from),
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
        let from = &tile.scales[block * kind.bytes()..][..kind.bytes()];
        let Group { scale: [scale, second], min, .. } = self;
        (*second, *min) = ([0.0; TILE], [0.0; TILE]);
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
                let d = halves(&from[16 * TILE..]);
                let factors = &from[2 * g * TILE..][..2 * TILE];
                for i in 0..TILE {
                    scale[i] = d[i] * f32::from(factors[i].cast_signed());
                    second[i] = d[i] * f32::from(factors[TILE + i].cast_signed());
                }
            }
        }
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

/// Scales and minimum of channel `i` in group `index`.
#[inline(always)]
fn scale(tile: &TileBytes<'_>, index: usize, i: usize) -> ([f32; 2], f32) {
    let kind = tile.layout.kind;
    let (block, g) = (index / kind.groups(), index % kind.groups());
    let from = &tile.scales[block * kind.bytes()..][..kind.bytes()];
    let half = |at: usize| {
        let bytes = [from[at + 2 * i], from[at + 2 * i + 1]];
        binary16::to_f32(u16::from_le_bytes(bytes))
    };
    match kind {
        Scales::None => ([0.0; 2], 0.0),
        Scales::Plain => ([half(0), 0.0], 0.0),
        Scales::Minimum => ([half(0), 0.0], half(2 * TILE)),
        Scales::Super => {
            let scale = half(0) * f32::from(from[(4 + g) * TILE + i]);
            ([scale, 0.0], -(half(2 * TILE) * f32::from(from[(12 + g) * TILE + i])))
        }
        Scales::Halves => {
            let of_half =
                |h: usize| half(16 * TILE) * f32::from(from[(2 * g + h) * TILE + i].cast_signed());
            ([of_half(0), of_half(1)], 0.0)
        }
    }
}

/// Dequantises channel `lane` of a tile.
pub(crate) fn channel(tile: &TileBytes<'_>, lane: usize, to: &mut [f32]) {
    let layout = tile.layout;
    let stored = |bytes: usize| tile.values.chunks_exact(bytes).skip(lane).step_by(TILE);
    let two = |stored: &[u8]| u16::from_le_bytes([stored[0], stored[1]]);
    match layout.dtype {
        DType::F32 => to.iter_mut().zip(stored(4)).for_each(|(to, from)| {
            *to = f32::from_le_bytes([from[0], from[1], from[2], from[3]]);
        }),
        DType::F16 => {
            to.iter_mut().zip(stored(2)).for_each(|(to, from)| *to = binary16::to_f32(two(from)));
        }
        DType::Bf16 => to.iter_mut().zip(stored(2)).for_each(|(to, from)| {
            *to = f32::from_bits(u32::from(two(from)) << 16);
        }),
        dtype => {
            let offset = zero_point(dtype) as f32;
            let groups = tile.values.chunks_exact(layout.lines * LINE);
            for (index, (lines, to)) in groups.zip(to.chunks_exact_mut(GROUP)).enumerate() {
                let (scale, min) = scale(tile, index, lane);
                for (col, to) in to.iter_mut().enumerate() {
                    let half = if layout.kind == Scales::Halves { col / 16 } else { 0 };
                    let q = f32::from(value(lines, layout.lines, (lane, col)));
                    *to = scale[half] * (q - offset) + min;
                }
            }
        }
    }
}

/// One integer of a group, as [`Group::read`] unpacks it.
#[inline(always)]
fn value(from: &[u8], lines: usize, (lane, col): (usize, usize)) -> u8 {
    let (j, at) = (col / 4, lane * 4 + col % 4);
    let line = |line: usize| from[line * LINE + at];
    let nibble = || line(j % 4) >> (4 * (j / 4)) & 15;
    match lines {
        8 => line(j),
        5 => nibble() | (line(4) >> j & 1) << 4,
        6 => nibble() | (line(4 + j / 4) >> (2 * (j % 4)) & 3) << 4,
        _ => nibble(),
    }
}
