//! A marker beside a file of packed weights: all bytes of this version of the file have been checked.

use super::report::PackCache;
use super::within_file_size_limit;
use lapwing_model::kept_file::{self, Kept, Magic};
use lapwing_model::weights::{LeasedFile, Stamp};
use std::io;
use std::path::{Path, PathBuf};

const MAGIC: Magic = *b"LWPCHKD1";
/// Largest accepted file in bytes.
const BYTES_MAX: u64 = 4096;

/// The marker that a file of packed weights has if all of it was checked.
pub(super) struct Marker {
    path: PathBuf,
    stamp: Stamp,
    /// Checksum of the file's header, and so of the checksums of all its bytes.
    sum: [u8; 4],
}

impl Marker {
    /// That of the file at `path` with this stamp, whose header has the checksum `sum`.
    pub(super) fn new(path: &Path, stamp: Stamp, sum: u32) -> Marker {
        Marker { path: PackCache::marker_of(path), stamp, sum: sum.to_le_bytes() }
    }

    /// Whether it is there.
    pub(super) fn is_there(&self) -> bool {
        match kept_file::read(&self.path, &MAGIC, &self.stamp.to_string(), BYTES_MAX) {
            Kept::Content(sum) => sum == self.sum,
            Kept::Absent | Kept::Unusable(_) => false,
        }
    }

    /// Writes it, for a file that was checked since it has its lease; not if a change in this moment might not show in the file's stamp.
    /// Without a marker, the next start checks the file again.
    pub(super) fn write(&self, file: &LeasedFile) {
        if within_file_size_limit(BYTES_MAX).is_ok() && self.is_lasting(file).unwrap_or(false) {
            kept_file::write(&self.path, &MAGIC, &self.stamp.to_string(), &self.sum);
        }
    }

    /// Whether the file will be what was checked as long as it has this stamp, also after the system has failed.
    fn is_lasting(&self, file: &LeasedFile) -> io::Result<bool> {
        file.sync()?;
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new("."));
        let now = tempfile::tempfile_in(folder)?.metadata()?.modified()?;
        Ok(self.stamp.is_settled(now) && file.is_held())
    }
}
