//! A file of packed weights that is mapped.

use super::error::CacheReadError;
use super::header::FileHeader;
use super::key::CacheKey;
use super::marker::Marker;
use super::report::{NotMapped, PackCache};
use super::{Opened, header_of};
use crate::context::Cpu;
use crate::packed::beyond::BeyondMemory;
use crate::packed::file_data::{FileData, PackedFault};
use crate::packed::mapped::{Mapped, Unmapped};
use crate::packed::memory::Memory;
use lapwing_model::sync::{Mutex, lock};
use lapwing_model::weights::{DataFile, Unleased};

/// Chunks that a thread checks with one buffer.
const CHUNKS_AT_ONCE: usize = 16;

/// A mapped file, all of which has been checked: now or by an earlier start.
pub(super) struct Mapping {
    mapped: Mapped,
    marker: Marker,
    is_checked: bool,
}

/// Why a file is not mapped.
pub(super) enum MapFault {
    /// It cannot be used in any way.
    Unusable(CacheReadError),
    /// It may be read.
    Unmapped { file: DataFile, reason: NotMapped },
}

impl Mapping {
    /// Maps the open file of the cache. Checks all of it, on the pool, unless its marker says that this was done.
    pub(super) fn new(
        ctx: &Cpu,
        cache: &PackCache,
        file: DataFile,
        key: &CacheKey,
        beyond: Option<BeyondMemory>,
    ) -> Result<Mapping, MapFault> {
        let path = &cache.path;
        // Whatever is found from here on stays so.
        let file = file.leased()?;
        let FileHeader { data, sum } = header_of(&file, key)?;
        let marker = Marker::new(path, file.stamp(), sum);
        let is_checked = !marker.is_there();
        if is_checked {
            check(ctx, &file, &data)?;
        }
        Ok(Mapping { mapped: Mapped::new(path, file, data, beyond)?, marker, is_checked })
    }

    /// Its weights. If they were checked just now, a marker says so from now on.
    pub(super) fn marked(self) -> Opened {
        let Mapping { mapped, marker, is_checked } = self;
        if is_checked {
            marker.write(mapped.file());
        }
        Opened { memory: Memory::Mapped(Box::new(mapped)), is_checked, not_mapped: None }
    }
}

/// Maps the file that this start has just written, so that other processes share its weights. There will be no marker: the system may not
/// have written the file to its disk yet.
pub(in crate::pack) fn map_written(
    ctx: &Cpu,
    cache: &PackCache,
    key: &CacheKey,
    beyond: Option<BeyondMemory>,
) -> Result<Memory, NotMapped> {
    let file = DataFile::open(&cache.path);
    let file = file.map_err(|error| NotMapped::Unusable(CacheReadError::Read(error)))?;
    match Mapping::new(ctx, cache, file, key, beyond) {
        Ok(mapping) => Ok(Memory::Mapped(Box::new(mapping.mapped))),
        Err(MapFault::Unusable(error)) => Err(NotMapped::Unusable(error)),
        Err(MapFault::Unmapped { reason, .. }) => Err(reason),
    }
}

/// Reads all bytes and checks them, on the pool.
fn check(ctx: &Cpu, file: &DataFile, data: &FileData) -> Result<(), PackedFault> {
    let fault = Mutex::new(None);
    ctx.pool().run_claimed(data.chunks(), CHUNKS_AT_ONCE, &|claim| {
        let mut bytes = Vec::new();
        for chunk in claim.tasks.clone() {
            bytes.resize(data.chunk_len(chunk), 0);
            if let Err(error) = data.read(file, chunk, &mut bytes) {
                *lock(&fault) = Some(error);
                return;
            }
        }
    });
    let fault = lock(&fault).take();
    fault.map_or(Ok(()), Err)
}

impl From<CacheReadError> for MapFault {
    fn from(error: CacheReadError) -> MapFault {
        MapFault::Unusable(error)
    }
}

impl From<PackedFault> for MapFault {
    fn from(fault: PackedFault) -> MapFault {
        MapFault::Unusable(fault.into())
    }
}

impl From<Unleased> for MapFault {
    fn from(Unleased { file, reason }: Unleased) -> MapFault {
        MapFault::Unmapped { file, reason: NotMapped::Lease(reason) }
    }
}

impl From<Unmapped> for MapFault {
    fn from(Unmapped { file, source }: Unmapped) -> MapFault {
        MapFault::Unmapped { file: file.into_file(), reason: NotMapped::System(source) }
    }
}
