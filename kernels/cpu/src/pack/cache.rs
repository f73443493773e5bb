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
pub(crate) mod report;

use crate::context::Cpu;
use crate::packed::file_data::{CHUNK, FileData, PackedFault};
use crate::packed::memory::{Memory, Own};
use error::{CacheReadError, CacheWriteError};
use header::{FileHeader, header};
use key::CacheKey;
use lapwing_model::sync::{Mutex, lock};
use lapwing_model::weights::{DataFile, ReadFault, WeightFile};
pub(super) use mapping::map_written;
use mapping::{MapFault, Mapping};
use report::{NotMapped, PART_PREFIX, PART_SUFFIX, PackCache, PackedMemory};
use std::io::{self, Write as _};
use std::path::Path;

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

/// Reads or maps the file, as the cache says. `None` if there is no file.
pub(super) fn open(
    ctx: &Cpu,
    cache: &PackCache,
    key: &CacheKey,
) -> Result<Option<Opened>, CacheReadError> {
    let file = match DataFile::open(&cache.path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(CacheReadError::Read(error)),
    };
    let (file, not_mapped) = match cache.memory {
        PackedMemory::Read => (file, None),
        PackedMemory::Mapped => match Mapping::new(ctx, &cache.path, file, key) {
            Ok(mapping) => return Ok(Some(mapping.marked())),
            Err(MapFault::Unusable(error)) => return Err(error),
            Err(MapFault::Unmapped { file, reason }) => (file, Some(reason)),
        },
    };
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
        }
    }
}

/// A temporary file that will replace the one at the cache's path.
pub(super) struct PendingFile<'a> {
    cache: &'a PackCache,
    file: tempfile::NamedTempFile,
}

impl<'a> PendingFile<'a> {
    /// Creates the file before packing: its creation time shows whether a later change of the
    /// weight file can be detected by its time stamp.
    pub(super) fn new(
        cache: &'a PackCache,
        key: &CacheKey,
        weights: &WeightFile,
    ) -> Result<PendingFile<'a>, CacheWriteError> {
        let bytes = key.bytes as u64;
        if bytes > cache.bytes_max {
            return Err(CacheWriteError::TooLarge { bytes, bytes_max: cache.bytes_max });
        }
        within_file_size_limit(bytes)?;
        let folder = cache.path.parent().unwrap_or(Path::new(""));
        std::fs::create_dir_all(folder).map_err(failed(cache, "create the folder of"))?;
        let mut builder = tempfile::Builder::new();
        builder.prefix(PART_PREFIX).suffix(PART_SUFFIX);
        // Readable by others, as far as the umask allows: several users may share the folder.
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644));
        let file = builder.tempfile_in(folder).map_err(failed(cache, "make a file pending"))?;
        let made = file.as_file().metadata().and_then(|made| made.modified());
        let made = made.map_err(failed(cache, "read the time of"))?;
        if !weights.stamps().all(|stamp| stamp.is_settled(made)) {
            return Err(CacheWriteError::JustChanged);
        }
        Ok(PendingFile { cache, file })
    }

    /// Writes the packed weights and replaces the file at the cache's path.
    pub(super) fn keep(
        mut self,
        ctx: &Cpu,
        key: &CacheKey,
        data: &[u8],
        weights: &WeightFile,
    ) -> Result<(), CacheWriteError> {
        let cache = self.cache;
        let mut checksums = vec![0; data.len().div_ceil(CHUNK)];
        ctx.pool().chunks_mut(&mut checksums, 1, |i, to| to.fill(crc32fast::hash(chunk(data, i))));
        let header = header(key, &checksums);
        let bytes = (header.len() + data.len()) as u64;
        if bytes > cache.bytes_max {
            return Err(CacheWriteError::TooLarge { bytes, bytes_max: cache.bytes_max });
        }
        within_file_size_limit(bytes)?;
        let written = self.file.write_all(&header).and_then(|()| self.file.write_all(data));
        written.map_err(failed(cache, "write"))?;
        if !weights.is_unchanged() {
            return Err(CacheWriteError::Changing);
        }
        self.file.persist(&cache.path).map_err(|error| failed(cache, "replace")(error.error))?;
        Ok(())
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

fn failed(cache: &PackCache, doing: &'static str) -> impl FnOnce(io::Error) -> CacheWriteError {
    let path = cache.path.clone();
    move |source| CacheWriteError::Write { doing, path, source }
}

fn chunk(data: &[u8], index: usize) -> &[u8] {
    let start = index * CHUNK;
    &data[start..data.len().min(start + CHUNK)]
}
