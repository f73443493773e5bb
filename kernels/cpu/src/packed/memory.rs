//! Memory of packed weights, and of the bandwidth probe: an anonymous mapping, with huge pages if
//! the system has them, or a file that is mapped.

use super::mapped::Mapped;
use memmap2::{Mmap, MmapMut};
use std::fmt;
use std::io;

/// Read-only bytes that start at a page.
pub(crate) enum Memory {
    /// Of this process.
    Own(Own),
    /// Of a file.
    Mapped(Box<Mapped>),
}

/// Memory of this process, read-only.
pub(crate) struct Own {
    map: Mmap,
    /// A map has one byte at least.
    len: usize,
}

/// The system refused to map memory.
#[derive(Debug)]
pub(crate) struct MemoryError {
    pub(crate) bytes: usize,
    pub(crate) source: io::Error,
}

impl Memory {
    /// Maps `bytes` zeros of this process, lets `fill` write to them, and makes them read-only.
    pub(crate) fn filled(
        bytes: usize,
        fill: impl FnOnce(&mut [u8]),
    ) -> Result<Memory, MemoryError> {
        Own::filled(bytes, fill).map(Memory::Own)
    }

    /// The bytes. Those of a file may be read only while somebody [holds](Mapped::hold) it.
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Memory::Own(own) => own.bytes(),
            Memory::Mapped(mapped) => mapped.bytes(),
        }
    }

    /// Number of bytes.
    pub(crate) fn len(&self) -> usize {
        match self {
            Memory::Own(own) => own.len,
            Memory::Mapped(mapped) => mapped.len(),
        }
    }

    /// The mapped file, if it is one.
    pub(crate) fn mapped(&self) -> Option<&Mapped> {
        match self {
            Memory::Own(_) => None,
            Memory::Mapped(mapped) => Some(mapped),
        }
    }

    /// Keeps the memory resident: the system neither swaps it out nor drops it.
    pub(crate) fn lock(&self) -> io::Result<()> {
        match self {
            Memory::Own(own) => own.lock(),
            Memory::Mapped(mapped) => mapped.lock(),
        }
    }
}

impl Own {
    /// As [`Memory::filled`].
    pub(crate) fn filled(bytes: usize, fill: impl FnOnce(&mut [u8])) -> Result<Own, MemoryError> {
        let failed = |source| MemoryError { bytes, source };
        let mut map = MmapMut::map_anon(bytes.max(1)).map_err(failed)?;
        advise_huge(&map);
        fill(&mut map[..bytes]);
        Ok(Own { map: map.make_read_only().map_err(failed)?, len: bytes })
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.map[..self.len]
    }

    #[cfg(unix)]
    pub(super) fn lock(&self) -> io::Result<()> {
        self.map.lock()
    }

    /// This system has no such call.
    #[cfg(not(unix))]
    pub(super) fn lock(&self) -> io::Result<()> {
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
        let kind = if self.mapped().is_some() { "Mapped" } else { "Own" };
        write!(f, "Memory::{kind}({} bytes)", self.len())
    }
}
