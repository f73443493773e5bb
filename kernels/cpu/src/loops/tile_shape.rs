//! Register blocks of an instruction set's matmuls.

use crate::loops::quantize::Q8Block;
use crate::packed::layout::{SUPER_GROUPS, TILE};

/// Register blocks of an instruction set's matmuls: rows × tiles of 16 output channels whose sums
/// stay in registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TileShape {
    /// Most rows for which quantised tiles are unpacked in registers as they are read; more rows
    /// share a panel that is unpacked once. 0 if every group is unpacked once for all rows.
    pub direct_rows: usize,
    /// Most rows of a block of quantised weights that share a panel.
    pub rows: usize,
    /// Tiles of such a block, and of a panel.
    pub tiles: usize,
    /// Bytes of a group of 32 columns in a panel; 0 without panels.
    pub panel_group_bytes: usize,
    /// Most rows of a block of float weights.
    pub float_rows: usize,
    /// Tiles of a block of float weights.
    pub float_tiles: usize,
}

impl TileShape {
    /// Output channels of a tile.
    pub const CHANNELS: usize = TILE;

    /// Most groups of 32 columns that a panel holds: with the activations that a block of rows multiplies
    /// them with, they fill 7/8 of a thread's first-level cache.
    pub(crate) fn panel_groups(&self, l1_bytes: usize) -> usize {
        let of_group = self.panel_group_bytes + self.rows * size_of::<Q8Block>();
        (l1_bytes / 8 * 7 / of_group).max(SUPER_GROUPS)
    }
}
