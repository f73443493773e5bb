//! One group of a tile in plain Rust.

use super::TileBytes;
use super::layout::{LINE, Scales};
use crate::binary16;
use crate::cpu::tile::TILE;

/// 32 columns of 16 features: `value = scale · (q − offset) + min`, q unsigned; with scales of
/// half groups, the second is that of the last 16 columns. The minimum is 0 where a format has
/// none.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(crate) struct Group {
    /// `[8 quads][16 features][4 columns]`.
    pub(crate) q: [[u8; LINE]; 8],
    pub(crate) scale: [[f32; TILE]; 2],
    pub(crate) min: [f32; TILE],
}

impl Group {
    pub(crate) fn new() -> Group {
        Group { q: [[0; LINE]; 8], scale: [[0.0; TILE]; 2], min: [0.0; TILE] }
    }

    /// Reads group `index` of a quantised tile.
    #[inline(always)]
    pub(crate) fn read(&mut self, tile: &TileBytes<'_>, index: usize) {
        self.read_values(tile, index);
        self.read_scales(tile, index);
    }

    /// The integers of group `index`.
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

    #[inline(always)]
    fn read_scales(&mut self, tile: &TileBytes<'_>, index: usize) {
        let kind = tile.layout.kind;
        let (block, g) = (index / kind.groups(), index % kind.groups());
        let from = &tile.scales[block * kind.bytes()..][..kind.bytes()];
        let half = |at: usize, i: usize| {
            let bytes = [from[at + 2 * i], from[at + 2 * i + 1]];
            binary16::to_f32(u16::from_le_bytes(bytes))
        };
        for i in 0..TILE {
            match kind {
                Scales::None => {}
                Scales::Plain => self.scale[0][i] = half(0, i),
                Scales::Minimum => {
                    (self.scale[0][i], self.min[i]) = (half(0, i), half(2 * TILE, i));
                }
                Scales::Super => {
                    self.scale[0][i] = half(0, i) * f32::from(from[(4 + g) * TILE + i]);
                    self.min[i] = -(half(2 * TILE, i) * f32::from(from[(12 + g) * TILE + i]));
                }
                Scales::Halves => {
                    for h in 0..2 {
                        let sub = from[(2 * g + h) * TILE + i].cast_signed();
                        self.scale[h][i] = half(16 * TILE, i) * f32::from(sub);
                    }
                }
            }
        }
    }
}
