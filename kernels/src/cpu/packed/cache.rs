//! A file of packed weights pending the weight file: written by the start that packs, mapped by
//! those that follow.
//!
//! The file is believed only as far as it has been checked: it must name the same source, matrices
//! and layout as are asked for now, and every byte of it is covered by a checksum that is computed
//! on every start. What does not pass is packed again, and replaced.

mod error;
mod header;

pub use error::{CacheReadError, CacheWriteError};

use super::layout::Layout;
use super::memory::Memory;
use super::source::Source;
use crate::cpu::Cpu;
use crate::cpu::tile::TILE;
use crate::sync::{AtomicBool, Ordering};
use crate::weights::{Bytes, WeightFile, WeightTensor};
use header::{CHUNK, FileHeader, head};
use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// Where packed weights are kept.
///
/// The file is replaced as a whole and never changed, so that any number of processes may use and
/// replace it at the same time. Nothing else may change it while it is mapped. Its checksums find
/// what was damaged by accident; who may write to the folder may write weights.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackCache {
    /// The file; its folder is made when it is missing.
    pub path: PathBuf,
    /// Most bytes that it may have.
    pub bytes_max: u64,
}

/// What became of a [`PackCache`].
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct PackReport {
    /// The weights were mapped from the file; else they were packed.
    pub mapped: bool,
    /// Why the file that was there was not used.
    pub read_error: Option<CacheReadError>,
    /// Why what was packed was not kept; none where it was, too.
    pub write_error: Option<CacheWriteError>,
}

/// Version of requantising: to be raised with every change of what it makes of the same values.
const REQUANT: u32 = 1;

/// What a file of packed weights must be of.
pub(super) struct CacheKey {
    /// The weight file's state.
    source: String,
    /// The matrices, and where they lie in both files.
    matrices: String,
    bytes: usize,
}

impl CacheKey {
    /// `sources` of `tensors`, packed one after another; none where the file system says nothing
    /// of the weight file.
    pub(super) fn new(
        file: &WeightFile,
        sources: &[Source<'_>],
        tensors: &[&WeightTensor],
    ) -> Option<CacheKey> {
        let mut source = String::new();
        for (stamp, (head, data)) in file.stamps().zip(file.samples()) {
            let _ = writeln!(source, "{}, {head:08x} {data:08x}", stamp?);
        }
        let mut text = format!("tiles of {TILE}\n");
        let mut bytes = 0;
        for (source, tensor) in sources.iter().zip(tensors) {
            let (layout, matrix) = (source.layout(), &source.matrix);
            let Layout { dtype, cols, tile, .. } = layout;
            let (rows, part, at) = (matrix.rows(), tensor.info().part(), tensor.info().range());
            let _ = write!(text, "{dtype} {rows} × {cols} of {part}:{} {tile}", at.start);
            if source.requant.is_some() {
                let _ = write!(text, " requantised from {} by {REQUANT}", matrix.dtype());
            }
            text.push('\n');
            bytes += layout.bytes(rows);
        }
        Some(CacheKey { source, matrices: text, bytes })
    }

    /// Bytes of the packed matrices.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}

/// Maps a file and checks all of it, on the pool. None where there is no file.
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

/// A file pending the one at the cache's path, which it will replace.
pub(super) struct PendingFile<'a> {
    cache: &'a PackCache,
    file: tempfile::NamedTempFile,
}

impl<'a> PendingFile<'a> {
    /// Makes it, before the weight file is packed: its time tells whether a change of the weight file
    /// from now on will show.
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
        std::fs::create_dir_all(folder).map_err(failed(cache, "make the folder of"))?;
        let mut builder = tempfile::Builder::new();
        builder.prefix(PART_PREFIX).suffix(PART_SUFFIX);
        // Others may read it, as far as the user's mask lets them: a folder may serve several users.
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644));
        let file = builder.tempfile_in(folder).map_err(failed(cache, "make a file pending"))?;
        let made = file.as_file().metadata().and_then(|made| made.modified());
        let made = made.map_err(failed(cache, "ask for the time of"))?;
        if !weights.stamps().flatten().all(|stamp| stamp.is_settled(made)) {
            return Err(CacheWriteError::JustChanged);
        }
        Ok(PendingFile { cache, file })
    }

    /// Writes what was packed, and replaces the file at the cache's path.
    pub(super) fn keep(
        mut self,
        ctx: &Cpu,
        (key, data): (&CacheKey, &[u8]),
        weights: &WeightFile,
    ) -> Result<(), CacheWriteError> {
        let cache = self.cache;
        let mut checksums = vec![0; data.len().div_ceil(CHUNK)];
        ctx.pool().chunks_mut(&mut checksums, 1, |i, to| to.fill(crc32fast::hash(chunk(data, i))));
        let head = head(key, &checksums);
        let bytes = (head.len() + data.len()) as u64;
        if bytes > cache.bytes_max {
            return Err(CacheWriteError::TooLarge { bytes, bytes_max: cache.bytes_max });
        }
        let written = self.file.write_all(&head).and_then(|()| self.file.write_all(data));
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

/// How the name of a file begins that is being written.
const PART_PREFIX: &str = ".lapwing-";
/// How it ends.
const PART_SUFFIX: &str = ".part";

impl PackCache {
    /// Whether a file of this name is one that is being written, or was when a process died.
    pub fn is_part(name: &str) -> bool {
        name.starts_with(PART_PREFIX) && name.ends_with(PART_SUFFIX)
    }
}

fn chunk(data: &[u8], index: usize) -> &[u8] {
    let start = index * CHUNK;
    &data[start..data.len().min(start + CHUNK)]
}
