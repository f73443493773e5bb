//! Sizes of register blocks, as data of an instruction set.

use crate::cpu::tile::TILE;

/// How an instruction set multiplies: the blocks of rows × tiles of 16 features whose sums it keeps
/// in registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TileShape {
    /// Most rows for which quantised tiles are unpacked in registers as they are read; more rows
    /// share a panel that is unpacked once. 0 where every group is unpacked once for all rows.
    pub direct_rows: usize,
    /// Most rows of a block of quantised weights, of those that share a panel.
    pub rows: usize,
    /// Tiles of such a block and of a panel.
    pub tiles: usize,
    /// Bytes of a group of 32 columns in a panel; 0 where there are none.
    pub panel_group_bytes: usize,
    /// Most rows of a block of float weights.
    pub float_rows: usize,
    /// Tiles of such a block.
    pub float_tiles: usize,
}

impl TileShape {
    /// OutputChannels of a tile.
    pub const CHANNELS: usize = TILE;
}
