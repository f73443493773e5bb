//! A packed weight matrix, and ranges of its output channels.

use crate::packed::group;
use crate::packed::layout::{Layout, TILE};
use crate::packed::memory::Memory;
use crate::packed::tile::{FloatTiles, TileBytes};
use lapwing_model::formats::DType;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

/// A packed matrix of `rows` (n) output channels × `cols` (k) input channels. Clones share the
/// memory.
#[derive(Clone, Debug)]
pub struct PackedMatrix {
    layout: Layout,
    rows: usize,
    memory: Arc<Memory>,
    bytes: Range<usize>,
    /// The sum of each channel's weights, once something needs it.
    sums: Arc<OnceLock<Vec<f32>>>,
}

impl PackedMatrix {
    /// `rows` output channels whose tiles are the given bytes of `memory`.
    pub(crate) fn new_in(
        memory: Arc<Memory>,
        bytes: Range<usize>,
        layout: Layout,
        rows: usize,
    ) -> PackedMatrix {
        PackedMatrix { layout, rows, memory, bytes, sums: Arc::default() }
    }

    /// Format of the packed values.
    pub fn dtype(&self) -> DType {
        self.layout.dtype
    }

    /// Output channels (n).
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Input channels (k).
    pub fn cols(&self) -> usize {
        self.layout.cols
    }

    /// The memory that holds it, usually beside other matrices.
    pub(crate) fn memory(&self) -> &Arc<Memory> {
        &self.memory
    }

    /// Bytes in memory.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Where its memory has it.
    pub(crate) fn place(&self) -> &Range<usize> {
        &self.bytes
    }

    /// All output channels.
    pub fn all(&self) -> OutputChannels<'_> {
        self.channels(0..self.rows)
    }

    /// A range of output channels.
    ///
    /// # Panics
    /// When the range ends after the last channel.
    pub fn channels(&self, range: Range<usize>) -> OutputChannels<'_> {
        assert!(range.start <= range.end && range.end <= self.rows, "{range:?} of {}", self.rows);
        OutputChannels { packed: self, range, factor: None }
    }

    pub(crate) fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Tile `index`: the channels from 16 · `index`. Channels after the last have zero scales, or
    /// zero values.
    pub(crate) fn tile(&self, index: usize) -> TileBytes<'_> {
        let tile = &self.tile_data()[index * self.layout.tile..][..self.layout.tile];
        let (values, scales) = tile.split_at(self.layout.values);
        TileBytes { layout: &self.layout, values, scales }
    }

    /// The bytes of all tiles.
    pub(crate) fn tile_data(&self) -> &[u8] {
        &self.memory.bytes()[self.bytes.clone()]
    }

    /// Bytes of a tile.
    pub(crate) fn tile_bytes(&self) -> usize {
        self.layout.tile
    }

    /// A range of tiles of a float matrix.
    pub(crate) fn float_tiles(&self, tiles: Range<usize>) -> FloatTiles<'_> {
        let Layout { dtype, cols, tile: stride, .. } = self.layout;
        let bytes = &self.tile_data()[tiles.start * stride..tiles.end * stride];
        FloatTiles { dtype, cols, count: tiles.len(), stride, bytes }
    }

    /// Dequantises one output channel, as a row of an embedding table.
    ///
    /// # Panics
    /// When there is no such channel, or `to` has another length.
    pub fn row(&self, row: usize, to: &mut [f32]) {
        assert!(row < self.rows && to.len() == self.layout.cols, "row {row} of {}", self.rows);
        group::channel(&self.tile(row / TILE), row % TILE, to);
    }

    /// Keeps the sum of each output channel's weights, as `sums` computes it, unless it is known.
    pub(crate) fn keep_channel_sums(&self, sums: impl FnOnce() -> Vec<f32>) {
        self.sums.get_or_init(sums);
    }

    /// The sum of each output channel's weights.
    ///
    /// # Panics
    /// Before [`keep_channel_sums`](PackedMatrix::keep_channel_sums).
    pub(crate) fn channel_sums(&self) -> &[f32] {
        match self.sums.get() {
            Some(sums) => sums,
            None => unreachable!("the channels were summed before"),
        }
    }

    /// Number of tiles.
    #[cfg(test)]
    pub(crate) fn tiles(&self) -> usize {
        self.rows.div_ceil(TILE)
    }
}

/// A range of output channels of a packed matrix.
#[derive(Clone, Debug)]
pub struct OutputChannels<'a> {
    packed: &'a PackedMatrix,
    range: Range<usize>,
    /// What products with it are multiplied by, if not 1.
    factor: Option<f32>,
}

impl<'a> OutputChannels<'a> {
    /// The same channels, times a factor.
    #[must_use]
    pub fn times(self, factor: Option<f32>) -> OutputChannels<'a> {
        OutputChannels { factor, ..self }
    }

    /// What products with it are multiplied by, if not 1.
    pub(crate) fn factor(&self) -> Option<f32> {
        self.factor
    }

    /// The matrix.
    pub(crate) fn packed(&self) -> &'a PackedMatrix {
        self.packed
    }

    /// The range of its output channels.
    pub(crate) fn range(&self) -> Range<usize> {
        self.range.clone()
    }

    /// Number of output channels (n).
    pub fn len(&self) -> usize {
        self.range.len()
    }

    /// Whether the range is empty.
    pub fn is_empty(&self) -> bool {
        self.range.is_empty()
    }

    /// The packed bytes from the tile with channel `first` of this range to the end of the matrix.
    pub(crate) fn bytes_from(&self, first: usize) -> &'a [u8] {
        let PackedMatrix { layout, memory, bytes, .. } = self.packed;
        let tile = (self.range.start + first) / TILE;
        &memory.bytes()[bytes.start + tile * layout.tile..bytes.end]
    }

    /// Where the matrix's memory has the tiles of the range.
    pub(crate) fn place(&self) -> Range<usize> {
        let (first, tile) = (self.packed.place().start, self.packed.layout.tile);
        let tiles = self.tiles();
        first + tiles.start * tile..first + tiles.end * tile
    }

    /// Tiles that hold the range.
    pub(crate) fn tiles(&self) -> Range<usize> {
        self.range.start / TILE..self.range.end.div_ceil(TILE)
    }
}
