//! Weight matrices laid out once for the products: tiles of 16 output features, each one
//! contiguous stream, without loss of the stored values and in about the stored size.

mod group;
mod layout;
mod memory;
mod pack;
#[cfg(test)]
mod tests;

pub(crate) use group::Group;
pub(crate) use layout::{Layout, Scales};

use crate::cpu::tile::TILE;
use crate::cpu::{Cpu, Matrix};
use crate::quant::DType;
use memory::{Memory, MemoryError};
use pack::pack;
use std::ops::Range;
use std::sync::Arc;
use thiserror::Error;

/// Why a matrix could not be packed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PackError {
    /// The system gives no memory.
    #[error(
        "no {bytes} bytes for the packed weights: {source}; free memory, or use a smaller model \
         or format"
    )]
    Memory {
        /// Bytes that were asked for.
        bytes: usize,
        /// What the system said.
        source: std::io::Error,
    },
}

impl From<MemoryError> for PackError {
    fn from(MemoryError { bytes, source }: MemoryError) -> PackError {
        PackError::Memory { bytes, source }
    }
}

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
        let layout = Layout::new(matrix.dtype(), matrix.cols());
        let bytes = layout.bytes(matrix.rows());
        let memory = Arc::new(Memory::filled(bytes, |to| pack(ctx, matrix, &layout, to))?);
        Ok(Packed { layout, rows: matrix.rows(), memory, bytes: 0..bytes })
    }

    /// Packs all `matrices`, one after another into one memory; `packed` is told of each.
    ///
    /// # Errors
    /// [`PackError`] when there is no memory for all of them.
    pub fn many(
        ctx: &Cpu,
        matrices: &[Matrix<'_>],
        mut packed: impl FnMut(usize),
    ) -> Result<Vec<Packed>, PackError> {
        let layout = |matrix: &Matrix<'_>| Layout::new(matrix.dtype(), matrix.cols());
        let size = |matrix: &Matrix<'_>| layout(matrix).bytes(matrix.rows());
        let memory = Memory::filled(matrices.iter().map(size).sum(), |mut to| {
            for (i, matrix) in matrices.iter().enumerate() {
                let part;
                (part, to) = to.split_at_mut(size(matrix));
                pack(ctx, matrix, &layout(matrix), part);
                packed(i);
            }
        })?;
        let memory = Arc::new(memory);
        let mut end = 0;
        let all = matrices.iter().map(|matrix| {
            let start = end;
            end += size(matrix);
            let (layout, memory) = (layout(matrix), Arc::clone(&memory));
            Packed { layout, rows: matrix.rows(), memory, bytes: start..end }
        });
        Ok(all.collect())
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
    pub fn all(&self) -> Features<'_> {
        self.features(0..self.rows)
    }

    /// The part of it that computes these output features.
    ///
    /// # Panics
    /// When it has not so many.
    pub fn features(&self, range: Range<usize>) -> Features<'_> {
        assert!(range.start <= range.end && range.end <= self.rows, "{range:?} of {}", self.rows);
        Features { packed: self, range }
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

    /// Number of tiles.
    #[cfg(test)]
    pub(crate) fn tiles(&self) -> usize {
        self.rows.div_ceil(TILE)
    }
}

/// Some output features of a packed matrix.
#[derive(Clone, Debug)]
pub struct Features<'a> {
    packed: &'a Packed,
    range: Range<usize>,
}

impl<'a> Features<'a> {
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
