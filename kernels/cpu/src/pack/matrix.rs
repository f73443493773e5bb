//! Packs matrices into memory.

use crate::context::Cpu;
use crate::matrix::Matrix;
use crate::pack::error::PackError;
use crate::pack::source::Source;
use crate::pack::tiles::pack;
use crate::packed::PackedMatrix;
use crate::packed::layout::Layout;
use crate::packed::memory::Memory;
use lapwing_model::requant::Requant;
use std::sync::Arc;

impl PackedMatrix {
    /// Packs `matrix` into memory of its own.
    ///
    /// # Errors
    /// [`PackError`] when there is not enough memory.
    pub fn new(ctx: &Cpu, matrix: &Matrix<'_>) -> Result<PackedMatrix, PackError> {
        PackedMatrix::one(ctx, Source::memory(*matrix, None))
    }

    /// As [`new`](PackedMatrix::new), requantised to `format`. Rows are dequantised and quantised
    /// one tile at a time, so there is never a second copy of the matrix.
    ///
    /// # Errors
    /// [`PackError`] when there is not enough memory, or a value cannot be represented in the
    /// format.
    ///
    /// # Panics
    /// When the columns are not whole groups of the form.
    pub fn requantized(
        ctx: &Cpu,
        matrix: &Matrix<'_>,
        format: Requant,
    ) -> Result<PackedMatrix, PackError> {
        PackedMatrix::one(ctx, Source::memory(*matrix, Some(format)))
    }

    fn one(ctx: &Cpu, source: Source<'_>) -> Result<PackedMatrix, PackError> {
        let sources = [source];
        let packed = PackedMatrix::within(pack_all(ctx, &sources)?, &sources).pop();
        Ok(packed.unwrap_or_else(|| unreachable!("one for each source")))
    }

    /// Packs all `matrices` into one block of memory.
    ///
    /// # Errors
    /// [`PackError`] when there is not enough memory.
    pub fn many(ctx: &Cpu, matrices: &[Matrix<'_>]) -> Result<Vec<PackedMatrix>, PackError> {
        let sources = matrices.iter().map(|matrix| Source::memory(*matrix, None));
        let sources: Vec<Source<'_>> = sources.collect();
        Ok(PackedMatrix::within(pack_all(ctx, &sources)?, &sources))
    }

    /// The matrices of `sources`, which are packed one after another in `memory`.
    pub(super) fn within(memory: Memory, sources: &[Source<'_>]) -> Vec<PackedMatrix> {
        let memory = Arc::new(memory);
        let mut end = 0;
        let all = sources.iter().map(|source| {
            let (layout, memory) = (source.layout(), Arc::clone(&memory));
            let (start, rows) = (end, source.rows());
            end += layout.bytes(rows);
            PackedMatrix::new_in(memory, start..end, layout, rows)
        });
        all.collect()
    }
}

/// Packs matrices one after another.
pub(super) fn pack_all(ctx: &Cpu, sources: &[Source<'_>]) -> Result<Memory, PackError> {
    let size = |source: &Source<'_>| source.layout().bytes(source.rows());
    let mut packed = Ok(());
    let memory = Memory::filled(sources.iter().map(size).sum(), |mut to| {
        for (i, source) in sources.iter().enumerate() {
            let part;
            (part, to) = to.split_at_mut(size(source));
            let packed_part = pack(ctx, source, Layout::tiles(source.rows()), part);
            packed = packed_part.map_err(|error| error.of(i));
            if packed.is_err() {
                return;
            }
        }
    })?;
    packed.map(|()| memory)
}
