//! Maps a file into memory.
#![expect(unsafe_code, reason = "maps a file")]

use lapwing_model::weights::LeasedFile;
use memmap2::{Mmap, MmapOptions};
use std::io;

/// Maps a whole file for reading: pages are read from the disk when they are touched, and all processes that map it share them.
/// Huge pages are requested; a file system without them refuses, which is harmless.
///
/// The bytes may be touched only as long as the lease is held, and for some seconds after it was seen to be held: as
/// [`Mapped::hold`](super::mapped::Mapped::hold) says. Later another program may cut the file off, and the system ends a process that touches a page behind its end.
pub(super) fn map(file: &LeasedFile) -> io::Result<Mmap> {
    let len = usize::try_from(file.bytes_total()).map_err(|_| io::ErrorKind::OutOfMemory)?;
    // SAFETY: the bytes must not change while they are borrowed. The file has a lease, so no process has it open for writing, and one
    // that opens it waits; all uses of the bytes are between `Mapped::hold`, which finds the lease held, and the end of what it returns, which is
    // renewed in less time than the system gives before it ends a lease.
    let map = unsafe { MmapOptions::new().len(len).map(file.file()) }?;
    #[cfg(target_os = "linux")]
    let _ = map.advise(memmap2::Advice::HugePage);
    Ok(map)
}
