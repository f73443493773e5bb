//! A file of packed weights: written by the start that packs, mapped by later starts.
//!
//! The file is trusted only as far as it has been checked: it must name the requested source,
//! matrices and layout, and a checksum, verified on every start, covers every byte. If a check
//! fails, the weights are packed again and the file is replaced.

pub(crate) mod error;
mod header;
pub(crate) mod key;
pub(crate) mod report;

use crate::cpu::context::Cpu;
use crate::cpu::packed::memory::Memory;
use crate::sync::{AtomicBool, Ordering};
use crate::weights::{Bytes, WeightFile};
use error::{CacheReadError, CacheWriteError};
use header::{CHUNK, FileHeader, header};
use key::CacheKey;
use report::{PART_PREFIX, PART_SUFFIX, PackCache};
use std::io::{self, Write as _};
use std::path::Path;

/// Maps a file and checks all of it, on the pool. `None` if there is no file.
pub(super) fn open(
    ctx: &Cpu,
    path: &Path,
    key: &CacheKey,
) -> Result<Option<Memory>, CacheReadError> {
    let file = match Bytes::map(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(CacheReadError::Read(error)),
    };
    file.advise_huge();
    let FileHeader { start, checksums } = header::check(&file, key)?;
    let data = &file[start..];
    let sound = AtomicBool::new(true);
    ctx.pool().run(checksums.len(), &|i| {
        let found = crc32fast::hash(chunk(data, i));
        if checksums[i] != found.to_le_bytes() {
            sound.store(false, Ordering::Relaxed);
        }
    });
    match sound.load(Ordering::Relaxed) {
        true => Ok(Some(Memory::of_file(file, start))),
        false => Err(CacheReadError::Damaged { what: "the packed values" }),
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
        if !weights.stamps().flatten().all(|stamp| stamp.is_settled(made)) {
            return Err(CacheWriteError::JustChanged);
        }
        Ok(PendingFile { cache, file })
    }

    /// Writes the packed weights and replaces the file at the cache's path.
    pub(super) fn keep(
        mut self,
        ctx: &Cpu,
        (key, data): (&CacheKey, &[u8]),
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
        let written = self.file.write_all(&header).and_then(|()| self.file.write_all(data));
        written.map_err(failed(cache, "write"))?;
        if !weights.is_unchanged() {
            return Err(CacheWriteError::Changing);
        }
        self.file.persist(&cache.path).map_err(|error| failed(cache, "replace")(error.error))?;
        Ok(())
    }
}

fn failed(cache: &PackCache, doing: &'static str) -> impl FnOnce(io::Error) -> CacheWriteError {
    let path = cache.path.clone();
    move |source| CacheWriteError::Write { doing, path, source }
}

fn chunk(data: &[u8], index: usize) -> &[u8] {
    let start = index * CHUNK;
    &data[start..data.len().min(start + CHUNK)]
}
