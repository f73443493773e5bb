//! A file of packed weights that is being written.

use super::error::CacheWriteError;
use super::header::{self, header};
use super::key::CacheKey;
use super::report::{NotMapped, PART_PREFIX, PART_SUFFIX, PackCache};
use super::within_file_size_limit;
use crate::context::Cpu;
use crate::packed::file_data::CHUNK;
use lapwing_model::weights::{WeightFile, can_lease};
use std::fs::File;
use std::io::{self, Seek as _, SeekFrom, Write as _};
use std::path::Path;

/// A temporary file that will replace the one at the cache's path.
pub(in crate::pack) struct PendingFile<'a> {
    cache: &'a PackCache,
    file: tempfile::NamedTempFile,
    /// Of the chunks that are written.
    checksums: Vec<u32>,
}

impl<'a> PendingFile<'a> {
    /// Creates the file before packing, when it is known that it has room: its creation time shows whether a later change of the
    /// weight file can be detected by its time stamp.
    pub(in crate::pack) fn new(
        cache: &'a PackCache,
        key: &CacheKey,
        weights: &WeightFile,
    ) -> Result<PendingFile<'a>, CacheWriteError> {
        let bytes = (header::bytes(key) + key.bytes) as u64;
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
        let mut file = builder.tempfile_in(folder).map_err(failed(cache, "make a file pending"))?;
        let made = file.as_file().metadata().and_then(|made| made.modified());
        let made = made.map_err(failed(cache, "read the time of"))?;
        if !weights.stamps().all(|stamp| stamp.is_settled(made)) {
            return Err(CacheWriteError::JustChanged);
        }
        fits_on_disk(cache, file.as_file(), bytes)?;
        let data = file.seek(SeekFrom::Start(header::bytes(key) as u64));
        data.map_err(failed(cache, "write"))?;
        Ok(PendingFile { cache, file, checksums: Vec::new() })
    }

    /// Whether the file can be mapped when it is written, as far as that depends on the system and on where the file is.
    pub(in crate::pack) fn can_be_mapped(&self) -> Result<(), NotMapped> {
        can_lease(self.file.as_file()).map_err(NotMapped::Lease)
    }

    /// Writes the next packed weights: whole chunks, except for the last ones.
    pub(in crate::pack) fn append(
        &mut self,
        ctx: &Cpu,
        data: &[u8],
    ) -> Result<(), CacheWriteError> {
        let first = self.checksums.len();
        self.checksums.resize(first + data.len().div_ceil(CHUNK), 0);
        let sums = &mut self.checksums[first..];
        ctx.pool().chunks_mut(sums, 1, |i, to| to.fill(crc32fast::hash(chunk(data, i))));
        self.file.write_all(data).map_err(failed(self.cache, "write"))
    }

    /// Writes the header, and replaces the file at the cache's path.
    pub(in crate::pack) fn finish(
        mut self,
        key: &CacheKey,
        weights: &WeightFile,
    ) -> Result<(), CacheWriteError> {
        let cache = self.cache;
        let header = header(key, &self.checksums);
        let written = self.file.rewind().and_then(|()| self.file.write_all(&header));
        written.map_err(failed(cache, "write"))?;
        if !weights.is_unchanged() {
            return Err(CacheWriteError::Changing);
        }
        self.file.persist(&cache.path).map_err(|error| failed(cache, "replace")(error.error))?;
        Ok(())
    }
}

/// Whether the file system has as many bytes for this user, if it says so.
fn fits_on_disk(cache: &PackCache, file: &File, bytes: u64) -> Result<(), CacheWriteError> {
    #[cfg(unix)]
    if let Ok(disk) = rustix::fs::fstatvfs(file) {
        let free = disk.f_bavail.saturating_mul(disk.f_frsize);
        if free < bytes {
            return Err(CacheWriteError::DiskFull { bytes, free, path: cache.path.clone() });
        }
    }
    let _ = (cache, file, bytes);
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
