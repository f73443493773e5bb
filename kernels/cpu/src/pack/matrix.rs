//! Packs matrices, or reads them from the file of an earlier start.

use crate::context::Cpu;
use crate::matrix::Matrix;
use crate::pack::cache::key::CacheKey;
use crate::pack::cache::report::{PackCache, PackReport, PackedMemory};
use crate::pack::cache::{self, Opened, PendingFile};
use crate::pack::error::PackError;
use crate::pack::source::Source;
use crate::pack::tiles::{TileError, pack};
use crate::packed::PackedMatrix;
use crate::packed::memory::Memory;
use lapwing_model::requant::Requant;
use lapwing_model::weights::{WeightFile, WeightTensor};
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

    /// As [`many`](PackedMatrix::many), for `tensors` of a weight file: reads or maps those of `cache` if
    /// they are there, else packs and keeps them. Packing holds a few rows of the weight file in
    /// memory at a time.
    ///
    /// # Errors
    /// As [`many`](PackedMatrix::many), or when a tensor cannot be read. A cache file that cannot be used or written is not an
    /// error; the report says why.
    pub(crate) fn load_or_pack(
        ctx: &Cpu,
        sources: &[Source<'_>],
        tensors: &[&WeightTensor],
        cache: Option<&PackCache>,
        file: &WeightFile,
    ) -> Result<(Vec<PackedMatrix>, PackReport), PackError> {
        let mut report = PackReport::default();
        let known = cache.and_then(|cache| Some((cache, CacheKey::new(file, sources, tensors)?)));
        if let Some((cache, key)) = &known {
            match cache::open(ctx, cache, key) {
                Ok(Some(Opened { memory, is_checked, not_mapped })) => {
                    let mapped = memory.mapped().is_some();
                    report = PackReport {
                        loaded: true,
                        mapped,
                        checked: is_checked,
                        not_mapped,
                        ..report
                    };
                    return Ok((PackedMatrix::within(memory, sources), report));
                }
                Ok(None) => {}
                Err(fault) => report.read_error = Some(fault),
            }
        }
        let pending = known.as_ref().map(|(cache, key)| PendingFile::new(cache, key, file));
        let mut memory = pack_all(ctx, sources)?;
        if let (Some(pending), Some((cache, key))) = (pending, &known) {
            let kept = pending.and_then(|pending| pending.keep(ctx, key, memory.bytes(), file));
            report.write_error = kept.err();
            if report.write_error.is_none() && cache.memory == PackedMemory::Mapped {
                match cache::map_written(ctx, cache, key) {
                    Ok(mapped) => (memory, report.mapped) = (mapped, true),
                    Err(reason) => report.not_mapped = Some(reason),
                }
            }
        }
        Ok((PackedMatrix::within(memory, sources), report))
    }

    /// The matrices of `sources`, which are packed one after another in `memory`.
    fn within(memory: Memory, sources: &[Source<'_>]) -> Vec<PackedMatrix> {
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
            packed = pack(ctx, source, part).map_err(|error| match error {
                TileError::NotFinite { row, format } => {
                    PackError::NotFinite { matrix: i, row, format }
                }
                TileError::Read(error) => PackError::Read(error),
            });
            if packed.is_err() {
                return;
            }
        }
    })?;
    packed.map(|()| memory)
}
