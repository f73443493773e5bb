//! Packs matrices, or maps them from the file of an earlier start.

use crate::cpu::context::Cpu;
use crate::cpu::matrix::Matrix;
use crate::cpu::pack::cache::key::CacheKey;
use crate::cpu::pack::cache::report::{PackCache, PackReport};
use crate::cpu::pack::cache::{self, PendingFile};
use crate::cpu::pack::error::PackError;
use crate::cpu::pack::source::Source;
use crate::cpu::pack::tiles::{NotFinite, pack};
use crate::cpu::packed::PackedMatrix;
use crate::cpu::packed::layout::TILE;
use crate::cpu::packed::memory::Memory;
use crate::requant::Requant;
use crate::weights::{WeightFile, WeightTensor};
use std::ops::Range;
use std::sync::Arc;

impl PackedMatrix {
    /// Packs `matrix` into memory of its own.
    ///
    /// # Errors
    /// [`PackError`] when there is no memory for it.
    pub fn new(ctx: &Cpu, matrix: &Matrix<'_>) -> Result<PackedMatrix, PackError> {
        PackedMatrix::one(ctx, Source { matrix: *matrix, requant: None })
    }

    /// As [`new`](PackedMatrix::new), of the matrix quantised to `format`, whatever its own one is: rows
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
    ) -> Result<PackedMatrix, PackError> {
        PackedMatrix::one(ctx, Source { matrix: *matrix, requant: Some(format) })
    }

    fn one(ctx: &Cpu, source: Source<'_>) -> Result<PackedMatrix, PackError> {
        let sources = [source];
        let packed = PackedMatrix::within(pack_all(ctx, &sources, |_, _| {})?, &sources).pop();
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
    ) -> Result<Vec<PackedMatrix>, PackError> {
        let sources = matrices.iter().map(|matrix| Source { matrix: *matrix, requant: None });
        let sources: Vec<Source<'_>> = sources.collect();
        Ok(PackedMatrix::within(pack_all(ctx, &sources, read)?, &sources))
    }

    /// As [`many`](PackedMatrix::many) of `tensors` of a weight file, mapped from `cache` where they are
    /// kept there, else packed and kept. While they are packed, the pages of the weight file are
    /// given back as soon as they have been read.
    ///
    /// # Errors
    /// As [`many`](PackedMatrix::many). A file that cannot be used or written is no error; the report says
    /// so.
    pub(crate) fn load_or_pack(
        ctx: &Cpu,
        (sources, tensors): (&[Source<'_>], &[&WeightTensor]),
        (cache, file): (Option<&PackCache>, &WeightFile),
    ) -> Result<(Vec<PackedMatrix>, PackReport), PackError> {
        let mut report = PackReport::default();
        let known = cache.and_then(|cache| Some((cache, CacheKey::new(file, sources, tensors)?)));
        if let Some((cache, key)) = &known {
            match cache::open(ctx, &cache.path, key) {
                Ok(Some(memory)) => {
                    report.mapped = true;
                    return Ok((PackedMatrix::within(memory, sources), report));
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
        Ok((PackedMatrix::within(memory, sources), report))
    }

    /// `sources`, which lie packed one after another in `memory`.
    fn within(memory: Memory, sources: &[Source<'_>]) -> Vec<PackedMatrix> {
        let memory = Arc::new(memory);
        let mut end = 0;
        let all = sources.iter().map(|source| {
            let (layout, memory) = (source.layout(), Arc::clone(&memory));
            let (start, rows) = (end, source.matrix.rows());
            end += layout.bytes(rows);
            PackedMatrix::new_in(memory, start..end, layout, rows)
        });
        all.collect()
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
pub(super) const STRIP_BYTES: usize = 8 << 20;
