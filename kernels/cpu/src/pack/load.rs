//! Reads or maps packed matrices from the file of an earlier start, or packs them and keeps them in one.

use super::cache::error::{CacheWriteError, MustMap};
use super::cache::key::CacheKey;
use super::cache::report::{PackCache, PackReport, PackedMemory};
use super::cache::{self, OpenFault, Opened, PendingFile};
use super::error::PackError;
use super::matrix::pack_all;
use super::pieces::{PieceError, pack_pieces};
use super::source::Source;
use crate::context::Cpu;
use crate::packed::PackedMatrix;
use crate::packed::beyond::BeyondMemory;
use crate::packed::memory::Memory;
use lapwing_model::weights::{WeightFile, WeightTensor};

/// Matrices of a weight file that are to be packed, and where they may be.
pub(crate) struct Packing<'a> {
    /// The matrices.
    pub(crate) sources: &'a [Source<'a>],
    /// Their tensors.
    pub(crate) tensors: &'a [&'a WeightTensor],
    /// The weight file.
    pub(crate) file: &'a WeightFile,
    /// Where packed matrices are kept, if they are.
    pub(crate) cache: Option<&'a PackCache>,
    /// Bytes of memory that are free, if that is known.
    pub(crate) free: Option<u64>,
}

impl Packing<'_> {
    /// Reads or maps the matrices of the cache if they are there, else packs and keeps them. If they will be mapped, packing takes no more memory
    /// than [`BUFFER_BYTES`](super::pieces::BUFFER_BYTES) or some tiles; otherwise that of the packed matrices. Of the weight file, a
    /// few rows are in memory at a time.
    ///
    /// # Errors
    /// As [`PackedMatrix::many`], or when a tensor cannot be read, or the matrices are larger than the free memory and cannot be mapped. Otherwise a
    /// cache file that cannot be used or written is not an error; the report says why.
    pub(crate) fn load_or_pack(
        &self,
        ctx: &Cpu,
    ) -> Result<(Vec<PackedMatrix>, PackReport), PackError> {
        let size = |source: &Source<'_>| source.layout().bytes(source.rows());
        let bytes = self.sources.iter().map(size).fold(0, usize::saturating_add);
        let beyond = BeyondMemory::of(bytes, self.free);
        let mut report = PackReport { beyond, ..PackReport::default() };
        let memory = self.memory(ctx, &mut report).map_err(|fault| match (fault, beyond) {
            (Fault::Pack(error), _) => error,
            (Fault::MustMap(why), Some(beyond)) => PackError::Beyond { beyond, why },
            (Fault::MustMap(why), None) => unreachable!("the weights fit, but {why}"),
        })?;
        Ok((PackedMatrix::within(memory, self.sources), report))
    }

    fn memory(&self, ctx: &Cpu, report: &mut PackReport) -> Result<Memory, Fault> {
        let Some(cache) = self.cache else { return self.packed(ctx, report, MustMap::NotKept) };
        let key = CacheKey::new(self.file, self.sources, self.tensors);
        let Some(key) = key else { return self.packed(ctx, report, MustMap::NoIdentity) };
        match cache::open(ctx, cache, &key, report.beyond) {
            Ok(Some(Opened { memory, is_checked, not_mapped })) => {
                let mapped = memory.mapped().is_some();
                *report = PackReport {
                    loaded: true,
                    mapped,
                    checked: is_checked,
                    not_mapped,
                    ..std::mem::take(report)
                };
                return Ok(memory);
            }
            Ok(None) => {}
            Err(OpenFault::NotMapped(why)) => return Err(Fault::MustMap(why)),
            Err(OpenFault::Unusable(fault)) => report.read_error = Some(fault),
        }
        match (cache.memory, report.beyond) {
            (PackedMemory::Read, Some(_)) => Err(Fault::MustMap(MustMap::Read)),
            (PackedMemory::Read, None) => self.kept_later(ctx, cache, &key, report),
            (PackedMemory::Mapped, _) => self.mapped(ctx, cache, &key, report),
        }
    }

    /// Packs into memory, unless there is not enough; `why` it has to be memory.
    fn packed(&self, ctx: &Cpu, report: &PackReport, why: MustMap) -> Result<Memory, Fault> {
        match report.beyond {
            Some(_) => Err(Fault::MustMap(why)),
            None => Ok(pack_all(ctx, self.sources)?),
        }
    }

    /// Packs into memory, and then writes the file.
    fn kept_later(
        &self,
        ctx: &Cpu,
        cache: &PackCache,
        key: &CacheKey,
        report: &mut PackReport,
    ) -> Result<Memory, Fault> {
        let pending = PendingFile::new(cache, key, self.file);
        let memory = pack_all(ctx, self.sources)?;
        let kept = pending.and_then(|mut pending| {
            pending.append(ctx, memory.bytes())?;
            pending.finish(key, self.file)
        });
        report.write_error = kept.err();
        Ok(memory)
    }

    /// Packs into the file, piece by piece, and maps it. Where that is not possible, packs into memory.
    fn mapped(
        &self,
        ctx: &Cpu,
        cache: &PackCache,
        key: &CacheKey,
        report: &mut PackReport,
    ) -> Result<Memory, Fault> {
        let mut pending = match PendingFile::new(cache, key, self.file) {
            Ok(pending) => pending,
            Err(error) => return self.not_written(ctx, report, error),
        };
        if let Err(reason) = pending.can_be_mapped() {
            if report.beyond.is_some() {
                return Err(Fault::MustMap(MustMap::NotMapped(reason)));
            }
            report.not_mapped = Some(reason);
            drop(pending);
            return self.kept_later(ctx, cache, key, report);
        }
        let written = pack_pieces(ctx, self.sources, |data| pending.append(ctx, data));
        let finished = match written {
            Err(PieceError::Pack(error)) => return Err(error.into()),
            Err(PieceError::Keep(error)) => Err(error),
            Ok(()) => pending.finish(key, self.file),
        };
        if let Err(error) = finished {
            return self.not_written(ctx, report, error);
        }
        match cache::map_written(ctx, cache, key, report.beyond) {
            Ok(memory) => {
                report.mapped = true;
                Ok(memory)
            }
            Err(reason) if report.beyond.is_some() => {
                Err(Fault::MustMap(MustMap::NotMapped(reason)))
            }
            Err(reason) => {
                report.not_mapped = Some(reason);
                Ok(pack_all(ctx, self.sources)?)
            }
        }
    }

    /// Packs into memory because the file is not written, unless there is not enough.
    fn not_written(
        &self,
        ctx: &Cpu,
        report: &mut PackReport,
        error: CacheWriteError,
    ) -> Result<Memory, Fault> {
        if report.beyond.is_some() {
            return Err(Fault::MustMap(MustMap::NotWritten(error)));
        }
        report.write_error = Some(error);
        Ok(pack_all(ctx, self.sources)?)
    }
}

/// Why there are no packed matrices.
enum Fault {
    Pack(PackError),
    /// They are beyond the memory, and not mapped.
    MustMap(MustMap),
}

impl From<PackError> for Fault {
    fn from(error: PackError) -> Fault {
        Fault::Pack(error)
    }
}
