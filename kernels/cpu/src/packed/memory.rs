//! Memory of packed weights, and of the bandwidth probe: an anonymous mapping, with huge pages if
//! the system has them.

use memmap2::{Mmap, MmapMut};
use std::fmt;
use std::io;

/// Read-only bytes that start at a page.
pub(crate) struct Memory(Mmap);

/// The system refused to map memory.
#[derive(Debug)]
pub(crate) struct MemoryError {
    pub(crate) bytes: usize,
    pub(crate) source: io::Error,
}

impl Memory {
    /// Maps `bytes` zeros, lets `fill` write to them, and makes them read-only.
    pub(crate) fn filled(
        bytes: usize,
        fill: impl FnOnce(&mut [u8]),
    ) -> Result<Memory, MemoryError> {
        let failed = |source| MemoryError { bytes, source };
        let mut map = MmapMut::map_anon(bytes.max(1)).map_err(failed)?;
        advise_huge(&map);
        fill(&mut map[..bytes]);
        Ok(Memory(map.make_read_only().map_err(failed)?))
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Keeps the memory resident: the system neither swaps it out nor drops it.
    #[cfg(unix)]
    pub(crate) fn lock(&self) -> io::Result<()> {
        self.0.lock()
    }

    /// This system has no such call.
    #[cfg(not(unix))]
    pub(crate) fn lock(&self) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// Requests huge pages, so that a matmul needs few address translations. A system without them
/// refuses, which is harmless.
fn advise_huge(map: &MmapMut) {
    #[cfg(target_os = "linux")]
    let _ = map.advise(memmap2::Advice::HugePage);
    #[cfg(not(target_os = "linux"))]
    let _ = map;
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Memory({} bytes)", self.bytes().len())
    }
}
