//! Packed weights in a file that is mapped, so that processes share them.
//!
//! A program that is about to change the file waits for the end of its lease. Code that uses the weights checks often whether a program
//! waits. If so, the weights are read into memory of this process, the lease ends, and the map is not touched again.

use super::beyond::BeyondMemory;
use super::file_data::{FileData, PackedFault};
use super::map::{absent, map, request};
use super::memory::Own;
use lapwing_model::weights::LeasedFile;
use memmap2::Mmap;
use std::fmt;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock, RwLockReadGuard};

/// Packed weights that were in use are lost.
#[derive(Clone, Debug, thiserror::Error)]
#[error("another program has changed {path}, whose weights were in use: {fault}", path = path.display())]
pub struct LostWeights {
    /// The file of packed weights.
    pub path: PathBuf,
    /// What is wrong with it.
    pub fault: Arc<PackedFault>,
}

/// A mapped file of packed weights.
pub(crate) struct Mapped {
    path: PathBuf,
    map: Mmap,
    file: LeasedFile,
    data: FileData,
    /// What takes the place of the map, once another program wanted to change the file.
    copy: OnceLock<Result<Own, LostWeights>>,
    /// Shared by those who read from the map.
    users: RwLock<()>,
    /// Whether the weights are to stay resident.
    is_locked: AtomicBool,
    /// Set if they are larger than memory.
    beyond: Option<BeyondMemory>,
}

/// A file that could not be mapped.
#[derive(Debug)]
pub(crate) struct Unmapped {
    pub(crate) file: LeasedFile,
    pub(crate) source: io::Error,
}

impl Mapped {
    /// Maps the file at `path`, which has packed weights at `data`.
    pub(crate) fn new(
        path: &Path,
        file: LeasedFile,
        data: FileData,
        beyond: Option<BeyondMemory>,
    ) -> Result<Mapped, Unmapped> {
        match map(&file) {
            Ok(map) => Ok(Mapped {
                path: path.to_owned(),
                map,
                file,
                data,
                copy: OnceLock::new(),
                users: RwLock::new(()),
                is_locked: AtomicBool::new(false),
                beyond,
            }),
            Err(source) => Err(Unmapped { file, source }),
        }
    }

    /// The file.
    pub(crate) fn file(&self) -> &LeasedFile {
        &self.file
    }

    /// Where the file has the weights.
    pub(crate) fn data(&self) -> &FileData {
        &self.data
    }

    /// Both sizes, if the weights are larger than memory: pages that were read are dropped again.
    pub(crate) fn beyond(&self) -> Option<BeyondMemory> {
        self.beyond
    }

    /// Requests these bytes of the weights from the disk, as far as they are not in memory, and calls `each` with such ranges. Returns before they are
    /// read. Nothing on systems that do not say what is in memory.
    pub(crate) fn request(&self, bytes: &Range<usize>, mut each: impl FnMut(Range<usize>)) {
        if self.copy.get().is_some() {
            return;
        }
        let first = self.data.range.start;
        absent(&self.map, first + bytes.start..first + bytes.end, |range| {
            request(&self.map, &range);
            each(range.start - first..range.end - first);
        });
    }

    /// Whether the weights are in memory of this process by now.
    pub(crate) fn is_copied(&self) -> bool {
        matches!(self.copy.get(), Some(Ok(_)))
    }

    /// The weights: those of the map, as long as what [`hold`](Mapped::hold) returns exists, or the copy.
    pub(crate) fn bytes(&self) -> &[u8] {
        match self.copy.get() {
            Some(Ok(copy)) => copy.bytes(),
            _ => {
                debug_assert!(self.users.try_write().is_err(), "nobody holds mapped weights");
                &self.map[self.data.range.clone()]
            }
        }
    }

    /// Bytes of the weights.
    pub(super) fn len(&self) -> usize {
        self.data.range.len()
    }

    /// Looks whether a program waits to change the file, and then has `read` copy the weights. The bytes may be read until the
    /// result is dropped, which must be within seconds. Not while the thread has another result.
    pub(crate) fn hold(
        &self,
        read: impl Fn(&Mapped) -> Result<Own, PackedFault>,
    ) -> Result<RwLockReadGuard<'_, ()>, LostWeights> {
        loop {
            let user = self.users.read().unwrap_or_else(PoisonError::into_inner);
            match self.copy.get() {
                Some(Ok(_)) => return Ok(user),
                Some(Err(lost)) => return Err(lost.clone()),
                None if self.file.is_held() => return Ok(user),
                None => drop(user),
            }
            self.leave(&read);
        }
    }

    /// Copies the weights, waits for those who read from the map, and lets the other program go on.
    fn leave(&self, read: &impl Fn(&Mapped) -> Result<Own, PackedFault>) {
        self.copy.get_or_init(|| {
            let copy = read(self).and_then(|copy| {
                if self.is_locked.load(Ordering::Relaxed) {
                    copy.lock().map_err(PackedFault::Lock)?;
                }
                Ok(copy)
            });
            copy.map_err(|fault| LostWeights { path: self.path.clone(), fault: Arc::new(fault) })
        });
        drop(self.users.write().unwrap_or_else(PoisonError::into_inner));
        #[cfg(unix)]
        if self.is_locked.load(Ordering::Relaxed) {
            _ = self.map.unlock();
        }
        self.file.release();
    }

    /// As [`Memory::lock`]; the copy will be locked, too.
    pub(super) fn lock(&self) -> io::Result<()> {
        self.is_locked.store(true, Ordering::Relaxed);
        match self.copy.get() {
            Some(Ok(copy)) => copy.lock(),
            #[cfg(unix)]
            _ => self.map.lock(),
            #[cfg(not(unix))]
            _ => Err(io::ErrorKind::Unsupported.into()),
        }
    }
}

impl fmt::Debug for Mapped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Mapped({}, {} bytes)", self.path.display(), self.len())
    }
}

#[cfg(test)]
mod tests;
