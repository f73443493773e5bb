//! Tiles of a packed matrix.

use crate::packed::layout::{Layout, TILE};
use lapwing_model::formats::DType;

/// The bytes of one tile, as [`Layout`] describes it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TileBytes<'a> {
    pub(crate) layout: &'a Layout,
    /// Quantised: per group of 32 columns, [`Layout::lines`] lines of 64 bytes. Float: `[k][16]`
    /// stored values.
    pub(crate) values: &'a [u8],
    /// Scales and minimums, as [`scale_bytes`](crate::packed::layout::scale_bytes) describes.
    pub(crate) scales: &'a [u8],
}

/// Consecutive tiles of float values.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FloatTiles<'a> {
    /// A float format.
    pub(crate) dtype: DType,
    /// Columns (k).
    pub(crate) cols: usize,
    /// Number of tiles.
    pub(crate) count: usize,
    /// Bytes from one tile to the next.
    pub(crate) stride: usize,
    /// Each tile begins with `[k][16]` values.
    pub(crate) bytes: &'a [u8],
}

impl<'a> FloatTiles<'a> {
    /// The `[k][16]` values of a tile.
    ///
    /// # Panics
    /// When there is no such tile.
    pub(crate) fn tile(&self, index: usize) -> &'a [u8] {
        &self.bytes[index * self.stride..][..self.cols * TILE * self.dtype.block_bytes()]
    }
}
