//! A file of packed weights: written by the start that packs, read by later starts.
//!
//! The file is trusted only as far as it has been checked: it must name the requested source,
//! matrices and layout, and a checksum, verified on every start, covers every byte. If a check
//! fails, the weights are packed again and the file is replaced.

pub(crate) mod error;
mod header;
pub(crate) mod key;
pub(crate) mod report;

use crate::context::Cpu;
use crate::packed::memory::Memory;
use error::{CacheReadError, CacheWriteError};
use header::{CHUNK, FileHeader, header};
use key::CacheKey;
use lapwing_model::sync::{Mutex, lock};
use lapwing_model::weights::{DataFile, ReadFault, WeightFile};
use report::{PART_PREFIX, PART_SUFFIX, PackCache};
use std::io::{self, Write as _};
use std::path::Path;

/// Largest accepted header in bytes: enough for the checksums of 16 TiB.
const HEADER_BYTES_MAX: u64 = 65 << 20;

/// Reads a file into memory and checks all of it, on the pool. `None` if there is no file.
pub(super) fn open(
    ctx: &Cpu,
    path: &Path,
    key: &CacheKey,
) -> Result<Option<Memory>, CacheReadError> {
    let file = match DataFile::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(CacheReadError::Read(error)),
    };
    let prefix = start_of(&file, header::PREFIX as u64)?;
    let head = start_of(&file, header::bytes_needed(&prefix).min(HEADER_BYTES_MAX))?;
    let FileHeader { start, checksums } = header::check(&head, file.bytes_total(), key)?;
    let fault = Mutex::new(None);
    let memory = Memory::filled(key.bytes, |data| {
        ctx.pool().chunks_mut(data, CHUNK, |i, to| {
            let read = file.read((start + i * CHUNK) as u64, to).map_err(CacheReadError::from);
            let found = read.map(|()| crc32fast::hash(to));
            match found {
                Ok(found) if found.to_le_bytes() == checksums[i] => {}
                Ok(_) => {
                    *lock(&fault) = Some(CacheReadError::Damaged { what: "the packed values" })
                }
                Err(error) => *lock(&fault) = Some(error),
            }
        });
    });
    let memory = memory.map_err(|error| CacheReadError::Read(error.source))?;
    let fault = lock(&fault).take();
    fault.map_or(Ok(Some(memory)), Err)
}

/// The first `len` bytes of a file, or all of a shorter one.
fn start_of(file: &DataFile, len: u64) -> Result<Vec<u8>, CacheReadError> {
    let mut bytes = vec![0; len.min(file.bytes_total()) as usize];
    file.read(0, &mut bytes)?;
    Ok(bytes)
}

impl From<ReadFault> for CacheReadError {
    fn from(fault: ReadFault) -> CacheReadError {
        match fault {
            ReadFault::System(error) => CacheReadError::Read(error),
            ReadFault::Truncated { .. } | ReadFault::Changed => CacheReadError::Truncated,
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
