//! Where packed weights lie: one anonymous mapping, with huge pages where the system has them.

use memmap2::{Mmap, MmapMut};
use std::fmt;
use std::io;

/// Read-only bytes that start at a page.
pub(super) struct Memory(Mmap);

/// The system gives no such memory.
#[derive(Debug)]
pub(super) struct MemoryError {
    pub(super) bytes: usize,
    pub(super) source: io::Error,
}

impl Memory {
    /// Maps `bytes` zeros, lets `fill` write to them, and makes them read-only.
    pub(super) fn filled(
        bytes: usize,
        fill: impl FnOnce(&mut [u8]),
    ) -> Result<Memory, MemoryError> {
        let failed = |source| MemoryError { bytes, source };
        let mut map = MmapMut::map_anon(bytes.max(1)).map_err(failed)?;
        advise_huge(&map);
        fill(&mut map[..bytes]);
        Ok(Memory(map.make_read_only().map_err(failed)?))
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

/// Asks for huge pages, so that a product needs few address translations. A system that has none
/// refuses, and everything works with small ones.
fn advise_huge(map: &MmapMut) {
    #[cfg(target_os = "linux")]
    let _ = map.advise(memmap2::Advice::HugePage);
    #[cfg(not(target_os = "linux"))]
    let _ = map;
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Memory({} bytes)", self.0.len())
    }
}
