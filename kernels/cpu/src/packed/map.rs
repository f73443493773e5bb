//! Maps a file into memory, and tells which of its pages are there.
#![expect(unsafe_code, reason = "maps a file")]

use lapwing_model::weights::LeasedFile;
use memmap2::{Mmap, MmapOptions};
use std::io;
use std::ops::Range;

/// Pages that are looked at together.
#[cfg(target_os = "linux")]
const PAGES: usize = 4096;

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

/// Calls `each` with the ranges of these bytes that are not in memory, so that touching them reads from the disk: in order, and parts of pages
/// only where `bytes` begins or ends in one. Nothing on systems that do not say it.
#[cfg(target_os = "linux")]
pub(super) fn absent(map: &Mmap, bytes: Range<usize>, mut each: impl FnMut(Range<usize>)) {
    let page = rustix::param::page_size();
    let mut is_here = [0_u8; PAGES];
    let mut open: Option<Range<usize>> = None;
    let end = bytes.end.min(map.len());
    for start in (bytes.start / page * page..end).step_by(PAGES * page) {
        let pages = (end - start).div_ceil(page).min(PAGES);
        let at = map[start..].as_ptr().cast_mut().cast();
        // SAFETY: the address is that of a page of the map, the pages end with that of its last byte, and there is a byte for each of them. No byte of
        // the map is touched.
        let code = unsafe { libc::mincore(at, pages * page, is_here.as_mut_ptr()) };
        if code != 0 {
            return;
        }
        for (i, is_here) in is_here[..pages].iter().enumerate() {
            let this = start + i * page;
            let this = this.max(bytes.start)..(this + page).min(end);
            match (&mut open, is_here & 1 == 0) {
                (Some(open), true) => open.end = this.end,
                (None, true) => open = Some(this),
                (_, false) => open.take().into_iter().for_each(&mut each),
            }
        }
    }
    open.into_iter().for_each(each);
}

#[cfg(not(target_os = "linux"))]
pub(super) fn absent(_: &Mmap, _: Range<usize>, _: impl FnMut(Range<usize>)) {}

/// Has the system read these bytes from the disk, beside what the program does meanwhile. A system that refuses reads them when they are touched.
pub(super) fn request(map: &Mmap, bytes: &Range<usize>) {
    /// Linux reads no more for one request than this, unless an administrator or the disk allows it (`read_ahead_kb`).
    const AT_ONCE: usize = 128 << 10;
    #[cfg(unix)]
    for start in bytes.clone().step_by(AT_ONCE) {
        let len = AT_ONCE.min(bytes.end - start);
        let _ = map.advise_range(memmap2::Advice::WillNeed, start, len);
    }
    #[cfg(not(unix))]
    let _ = (map, bytes, AT_ONCE);
}
