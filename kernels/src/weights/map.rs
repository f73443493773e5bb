//! Read-only bytes of a weight file or of a packed-weight cache: a memory map, or a copy in memory
//! for parsing without a file.
#![expect(unsafe_code, reason = "mapping a file is unsafe: another process may change it")]

use std::fs::File;
use std::io;
use std::ops::{Deref, Range};
use std::path::Path;
use std::sync::Arc;

use memmap2::Mmap;

use super::stamp::Stamp;

/// Shared, read-only bytes. The file is unmapped when the last clone is dropped.
#[derive(Clone)]
pub(crate) struct Bytes(Arc<Storage>);

enum Storage {
    Map(Mmap, Stamp),
    Owned(Vec<u8>),
}

impl Bytes {
    /// Maps a whole file; pages are read on first access.
    pub(crate) fn map(path: &Path) -> io::Result<Bytes> {
        let other = || io::Error::new(io::ErrorKind::InvalidInput, "not a regular file");
        // Checked before opening as well, because opening a pipe blocks.
        if !std::fs::metadata(path)?.is_file() {
            return Err(other());
        }
        let file = File::open(path)?;
        let meta = file.metadata()?;
        if !meta.is_file() {
            return Err(other());
        }
        if meta.len() == 0 {
            return Ok(Bytes::copy(&[]));
        }
        // SAFETY: the map is private to this type, read-only, and its length never changes.
        // A process that changes or truncates the file while it is mapped breaks the contract
        // stated at `WeightFile::open` and `PackCache`; every reader checks its ranges against
        // the mapped length.
        let map = unsafe { Mmap::map(&file)? };
        Ok(Bytes(Arc::new(Storage::Map(map, Stamp::of(&meta)))))
    }

    /// Advises the system to use huge pages, for a file that will be read completely: fewer and
    /// longer reads, and fewer address translations. No effect on file systems without huge pages.
    pub(crate) fn advise_huge(&self) {
        #[cfg(target_os = "linux")]
        if let Storage::Map(map, _) = &*self.0 {
            let _ = map.advise(memmap2::Advice::HugePage);
        }
    }

    /// File-system stamp of the file when it was opened; `None` for bytes in memory.
    pub(super) fn stamp(&self) -> Option<Stamp> {
        match &*self.0 {
            Storage::Map(_, stamp) => Some(*stamp),
            Storage::Owned(_) => None,
        }
    }

    /// A copy of `bytes` in memory.
    pub(super) fn copy(bytes: &[u8]) -> Bytes {
        Bytes(Arc::new(Storage::Owned(bytes.to_vec())))
    }

    /// Releases the memory of the mapped pages around `range`, because an access may have read up
    /// to 2 MiB of neighbouring pages. Without system support, the pages stay until the system needs
    /// the memory.
    pub(super) fn give_back(&self, range: Range<usize>) {
        #[cfg(unix)]
        const AROUND: usize = 2 << 20;
        #[cfg(unix)]
        if let Storage::Map(map, _) = &*self.0
            && range.end <= map.len()
        {
            let advice = memmap2::UncheckedAdvice::DontNeed;
            let start = range.start / AROUND * AROUND;
            let end = range.end.next_multiple_of(AROUND).min(map.len());
            // SAFETY: the map is read-only and the file does not change, so a released page is
            // read from the file again with the same bytes.
            let _ = unsafe { map.unchecked_advise_range(advice, start, end - start) };
        }
        #[cfg(not(unix))]
        let _ = range;
    }
}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &*self.0 {
            Storage::Map(map, _) => map,
            Storage::Owned(bytes) => bytes,
        }
    }
}
