//! A file of packed weights: written by the start that packs, used by later starts.
//!
//! The file is trusted only as far as it has been checked: it must name the requested source,
//! matrices and layout, and checksums cover every byte. One that is read is checked on every start. One that is mapped is
//! checked unless a marker beside it says that this version of it was. If a check
//! fails, the weights are packed again and the file is replaced.

pub(crate) mod error;
mod header;
pub(crate) mod key;
mod mapping;
mod marker;
mod pending;
pub(crate) mod report;

use crate::context::Cpu;
use crate::packed::beyond::BeyondMemory;
use crate::packed::file_data::{CHUNK, FileData, PackedFault};
use crate::packed::memory::{Memory, Own};
use error::{CacheReadError, CacheWriteError, MustMap};
use header::FileHeader;
use key::CacheKey;
use lapwing_model::sync::{Mutex, lock};
use lapwing_model::weights::{DataFile, ReadFault};
pub(super) use mapping::map_written;
use mapping::{MapFault, Mapping};
pub(super) use pending::PendingFile;
use report::{NotMapped, PackCache, PackedMemory};
use std::io;

/// Largest accepted header in bytes: enough for the checksums of 16 TiB.
const HEADER_BYTES_MAX: u64 = 65 << 20;

/// Packed weights of a file.
pub(super) struct Opened {
    pub(super) memory: Memory,
    /// Whether all bytes were checked at this start.
    pub(super) is_checked: bool,
    /// Why they were read although they were to be mapped.
    pub(super) not_mapped: Option<NotMapped>,
}

/// Why a file is not opened.
pub(super) enum OpenFault {
    /// It cannot be used; its weights are packed again.
    Unusable(CacheReadError),
    /// Its weights are beyond the memory, and it cannot be mapped.
    NotMapped(MustMap),
}

/// Reads or maps the file, as the cache says; it is only mapped if its weights are `beyond` the memory. `None` if there is no file.
pub(super) fn open(
    ctx: &Cpu,
    cache: &PackCache,
    key: &CacheKey,
    beyond: Option<BeyondMemory>,
) -> Result<Option<Opened>, OpenFault> {
    let file = match DataFile::open(&cache.path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(CacheReadError::Read(error).into()),
    };
    let (file, not_mapped) = match cache.memory {
        PackedMemory::Read => (file, None),
        PackedMemory::Mapped => match Mapping::new(ctx, cache, file, key, beyond) {
            Ok(mapping) => return Ok(Some(mapping.marked())),
            Err(MapFault::Unusable(error)) => return Err(error.into()),
            Err(MapFault::Unmapped { file, reason }) => (file, Some(reason)),
        },
    };
    if beyond.is_some() {
        return Err(OpenFault::NotMapped(not_mapped.map_or(MustMap::Read, MustMap::NotMapped)));
    }
    let FileHeader { data, .. } = header_of(&file, key)?;
    let memory = Memory::Own(read(ctx, &file, &data)?);
    Ok(Some(Opened { memory, is_checked: true, not_mapped }))
}

/// Reads the header and checks it.
fn header_of(file: &DataFile, key: &CacheKey) -> Result<FileHeader, CacheReadError> {
    let prefix = start_of(file, header::PREFIX as u64)?;
    let head = start_of(file, header::bytes_needed(&prefix).min(HEADER_BYTES_MAX))?;
    header::check(&head, file.bytes_total(), key)
}

/// The first `len` bytes of a file, or all of a shorter one.
fn start_of(file: &DataFile, len: u64) -> Result<Vec<u8>, CacheReadError> {
    let mut bytes = vec![0; len.min(file.bytes_total()) as usize];
    file.read(0, &mut bytes)?;
    Ok(bytes)
}

/// Reads packed weights into memory of this process and checks all of them, on the pool.
pub(crate) fn read(ctx: &Cpu, file: &DataFile, data: &FileData) -> Result<Own, PackedFault> {
    let fault = Mutex::new(None);
    let memory = Own::filled(data.range.len(), |to| {
        ctx.pool().chunks_mut(to, CHUNK, |i, to| {
            if let Err(error) = data.read(file, i, to) {
                *lock(&fault) = Some(error);
            }
        });
    })?;
    let fault = lock(&fault).take();
    fault.map_or(Ok(memory), Err)
}

impl<E: Into<CacheReadError>> From<E> for OpenFault {
    fn from(fault: E) -> OpenFault {
        OpenFault::Unusable(fault.into())
    }
}

impl From<ReadFault> for CacheReadError {
    fn from(fault: ReadFault) -> CacheReadError {
        match fault {
            ReadFault::System(error) => CacheReadError::Read(error),
            ReadFault::Truncated { .. } | ReadFault::Changed => CacheReadError::Truncated,
        }
    }
}

impl From<PackedFault> for CacheReadError {
    fn from(fault: PackedFault) -> CacheReadError {
        match fault {
            PackedFault::Read(fault) => fault.into(),
            PackedFault::Damaged => CacheReadError::Damaged { what: "the packed values" },
            PackedFault::Memory { source, .. } | PackedFault::Lock(source) => {
                CacheReadError::Read(source)
            }
            PackedFault::Beyond(beyond) => {
                CacheReadError::Read(io::Error::other(beyond.to_string()))
            }
        }
    }
}

/// Checked before writing, because the system ends a process that writes more.
fn within_file_size_limit(bytes: u64) -> Result<(), CacheWriteError> {
    #[cfg(unix)]
    if let Some(limit) = rustix::process::getrlimit(rustix::process::Resource::Fsize).current
        && bytes > limit
    {
        return Err(CacheWriteError::FileSizeLimit { bytes, limit });
    }
    let _ = bytes;
    Ok(())
}
