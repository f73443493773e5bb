//! Weight matrices laid out once for the products: tiles of 16 output features, each one
//! contiguous stream, in about the stored size and, unless they are requantised, without loss of
//! the stored values.

mod cache;
mod error;
mod group;
mod layout;
mod memory;
mod pack;
mod source;
#[cfg(test)]
mod tests;

pub use cache::{CacheReadError, CacheWriteError, PackCache, PackReport};
pub use error::PackError;
pub(crate) use group::Group;
pub(crate) use layout::{GROUP, LINE, Layout, Scales};
pub(crate) use source::Source;

use crate::cpu::tile::{FloatTiles, TILE};
use crate::cpu::{Cpu, Matrix};
use crate::quant::DType;
use crate::requant::Requant;
use crate::weights::{WeightFile, WeightTensor};
use cache::{CacheKey, PendingFile};
pub(crate) use memory::Memory;
use pack::{NotFinite, pack};
use std::ops::Range;
use std::sync::Arc;

/// A matrix of `rows` (n) output features of `cols` (k) input features, packed. Cloning shares it.
#[derive(Clone, Debug)]
pub struct Packed {
    layout: Layout,
    rows: usize,
    memory: Arc<Memory>,
    bytes: Range<usize>,
}

impl Packed {
    /// Packs `matrix` into memory of its own.
    ///
    /// # Errors
    /// [`PackError`] when there is no memory for it.
    pub fn new(ctx: &Cpu, matrix: &Matrix<'_>) -> Result<Packed, PackError> {
        Packed::one(ctx, Source { matrix: *matrix, requant: None })
    }

    /// As [`new`](Packed::new), of the matrix quantised to `format`, whatever its own one is: rows
    /// are dequantised and quantised a tile at a time, so that there is never a second copy.
    ///
    /// # Errors
    /// [`PackError`] when there is no memory for it, or a value has no place in the format.
    ///
    /// # Panics
    /// When the columns are no multiple of 32.
    pub fn requantized(
        ctx: &Cpu,
        matrix: &Matrix<'_>,
        format: Requant,
    ) -> Result<Packed, PackError> {
        Packed::one(ctx, Source { matrix: *matrix, requant: Some(format) })
    }

    fn one(ctx: &Cpu, source: Source<'_>) -> Result<Packed, PackError> {
        let sources = [source];
        let packed = Packed::within(pack_all(ctx, &sources, |_, _| {})?, &sources).pop();
        Ok(packed.unwrap_or_else(|| unreachable!("one for each source")))
    }

    /// Packs all `matrices`, one after another into one memory; `read` is told of the bytes of each
    /// that will not be read again.
    ///
    /// # Errors
    /// [`PackError`] when there is no memory for all of them.
    pub fn many(
        ctx: &Cpu,
        matrices: &[Matrix<'_>],
        read: impl FnMut(usize, Range<usize>),
    ) -> Result<Vec<Packed>, PackError> {
        let sources = matrices.iter().map(|matrix| Source { matrix: *matrix, requant: None });
        let sources: Vec<Source<'_>> = sources.collect();
        Ok(Packed::within(pack_all(ctx, &sources, read)?, &sources))
    }

    /// As [`many`](Packed::many) of `tensors` of a weight file, mapped from `cache` where they are
    /// kept there, else packed and kept. While they are packed, the pages of the weight file are
    /// given back as soon as they have been read.
    ///
    /// # Errors
    /// As [`many`](Packed::many). A file that cannot be used or written is no error; the report says
    /// so.
    pub(crate) fn load_or_pack(
        ctx: &Cpu,
        (sources, tensors): (&[Source<'_>], &[&WeightTensor]),
        (cache, file): (Option<&PackCache>, &WeightFile),
    ) -> Result<(Vec<Packed>, PackReport), PackError> {
        let mut report = PackReport::default();
        let known = cache.and_then(|cache| Some((cache, CacheKey::new(file, sources, tensors)?)));
        if let Some((cache, key)) = &known {
            match cache::open(ctx, &cache.path, key) {
                Ok(Some(memory)) => {
                    report.mapped = true;
                    return Ok((Packed::within(memory, sources), report));
                }
                Ok(None) => {}
                Err(fault) => report.read_error = Some(fault),
            }
        }
        let pending = known.as_ref().map(|(cache, key)| PendingFile::new(cache, key, file));
        let memory = pack_all(ctx, sources, |i, bytes| tensors[i].give_back(bytes))?;
        if let (Some(pending), Some((_, key))) = (pending, &known) {
            let data = &memory.bytes()[..key.bytes()];
            let kept = pending.and_then(|pending| pending.keep(ctx, (key, data), file));
            report.write_error = kept.err();
        }
        Ok((Packed::within(memory, sources), report))
    }

    /// `sources`, which lie packed one after another in `memory`.
    fn within(memory: Memory, sources: &[Source<'_>]) -> Vec<Packed> {
        let memory = Arc::new(memory);
        let mut end = 0;
        let all = sources.iter().map(|source| {
            let (layout, memory) = (source.layout(), Arc::clone(&memory));
            let (start, rows) = (end, source.matrix.rows());
            end += layout.bytes(rows);
            Packed { layout, rows, memory, bytes: start..end }
        });
        all.collect()
    }

    /// Format of the values.
    pub fn dtype(&self) -> DType {
        self.layout.dtype
    }

    /// Output features (n).
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Input features (k).
    pub fn cols(&self) -> usize {
        self.layout.cols
    }

    /// Bytes that it takes in memory.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// All output features.
    pub fn all(&self) -> OutputChannels<'_> {
        self.channels(0..self.rows)
    }

    /// The part of it that computes these output features.
    ///
    /// # Panics
    /// When it has not so many.
    pub fn channels(&self, range: Range<usize>) -> OutputChannels<'_> {
        assert!(range.start <= range.end && range.end <= self.rows, "{range:?} of {}", self.rows);
        OutputChannels { packed: self, range }
    }

    pub(crate) fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Tile `index`: the features from 16 · `index`; those after the last have zero scales, or
    /// are zero.
    pub(crate) fn tile(&self, index: usize) -> TileBytes<'_> {
        let all = &self.memory.bytes()[self.bytes.clone()];
        let tile = &all[index * self.layout.tile..][..self.layout.tile];
        let (values, scales) = tile.split_at(self.layout.values);
        TileBytes { layout: &self.layout, values, scales }
    }

    /// Bytes of a tile.
    pub(crate) fn tile_bytes(&self) -> usize {
        self.layout.tile
    }

    /// These tiles of a float matrix.
    pub(crate) fn float_tiles(&self, tiles: Range<usize>) -> FloatTiles<'_> {
        let Layout { dtype, cols, tile: stride, .. } = self.layout;
        let all = &self.memory.bytes()[self.bytes.clone()];
        let bytes = &all[tiles.start * stride..tiles.end * stride];
        FloatTiles { dtype, cols, count: tiles.len(), stride, bytes }
    }

    /// The values of one output feature, as a table of embeddings has them.
    ///
    /// # Panics
    /// When it has no such feature, or `to` another length.
    pub fn row(&self, row: usize, to: &mut [f32]) {
        assert!(row < self.rows && to.len() == self.layout.cols, "row {row} of {}", self.rows);
        group::feature(&self.tile(row / TILE), row % TILE, to);
    }

    /// Number of tiles.
    #[cfg(test)]
    pub(crate) fn tiles(&self) -> usize {
        self.rows.div_ceil(TILE)
    }
}

/// Packs matrices one after another, strip by strip; `read` is told of the bytes of each.
fn pack_all(
    ctx: &Cpu,
    sources: &[Source<'_>],
    mut read: impl FnMut(usize, Range<usize>),
) -> Result<Memory, PackError> {
    let mut packed = Ok(());
    let size = |source: &Source<'_>| source.layout().bytes(source.matrix.rows());
    let memory = Memory::filled(sources.iter().map(size).sum(), |mut to| {
        for (i, source) in sources.iter().enumerate() {
            let (layout, matrix) = (source.layout(), &source.matrix);
            let row_bytes = matrix.row_bytes();
            let rows = (STRIP_BYTES / row_bytes).max(1).next_multiple_of(TILE);
            for start in (0..matrix.rows()).step_by(rows) {
                let strip = start..matrix.rows().min(start + rows);
                let part;
                (part, to) = to.split_at_mut(layout.bytes(strip.len()));
                let done = pack(ctx, (source, strip.clone()), &layout, part);
                if let Err(NotFinite { row, format }) = done {
                    packed = Err(PackError::NotFinite { matrix: i, row, format });
                    return;
                }
                read(i, strip.start * row_bytes..strip.end * row_bytes);
            }
        }
    })?;
    packed.map(|()| memory)
}

/// Bytes of a weight file after which its pages are given back: enough that it costs nothing.
const STRIP_BYTES: usize = 8 << 20;

/// Some output features of a packed matrix.
#[derive(Clone, Debug)]
pub struct OutputChannels<'a> {
    packed: &'a Packed,
    range: Range<usize>,
}

impl<'a> OutputChannels<'a> {
    /// The matrix.
    pub(crate) fn packed(&self) -> &'a Packed {
        self.packed
    }

    /// Which of its output features.
    pub(crate) fn range(&self) -> Range<usize> {
        self.range.clone()
    }

    /// Number of output features (n).
    pub fn len(&self) -> usize {
        self.range.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.range.is_empty()
    }

    /// The packed bytes from the tile with the feature number `first` of these on.
    pub(crate) fn bytes_from(&self, first: usize) -> &'a [u8] {
        let Packed { layout, memory, bytes, .. } = self.packed;
        let tile = (self.range.start + first) / TILE;
        &memory.bytes()[bytes.start + tile * layout.tile..bytes.end]
    }

    /// Tiles that hold them.
    pub(crate) fn tiles(&self) -> Range<usize> {
        self.range.start / TILE..self.range.end.div_ceil(TILE)
    }
}

/// One tile, as [`Layout`] describes it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TileBytes<'a> {
    pub(crate) layout: &'a Layout,
    /// Quantised: per group of 32 columns, [`Layout::lines`] lines of 64 bytes. Float:
    /// `[k][16]` stored values.
    pub(crate) values: &'a [u8],
    /// Scales and minimums, as [`Scales`] says.
    pub(crate) scales: &'a [u8],
}
