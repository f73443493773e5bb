//! Zeroed numbers in memory of their own, straight from the system.
//!
//! An allocator may serve a request from memory that was used before: it then has to write zeros to all
//! of it, and keeps it after the numbers are dropped. Keys and values are mostly never written.

use crate::device::{MappedMemory, SlotSource};
use bytemuck::Pod;
use memmap2::MmapMut;
use std::fmt;
use std::io;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

/// `len` numbers; those in memory of the system begin at a memory page, and pages that were never written occupy no
/// physical memory.
pub(super) struct Paged<T> {
    memory: Memory,
    bytes: usize,
    of: PhantomData<T>,
}

enum Memory {
    System(MmapMut),
    /// Memory of a device, all of which was written once.
    Mapped(Box<dyn MappedMemory>),
}

impl<T: Pod> Paged<T> {
    /// Maps `len` zeros.
    ///
    /// # Errors
    /// When the system has not that much memory.
    pub(super) fn zeroed(len: usize) -> io::Result<Paged<T>> {
        let bytes = len.checked_mul(size_of::<T>()).ok_or(io::ErrorKind::OutOfMemory)?;
        let memory = Memory::System(MmapMut::map_anon(bytes.max(1))?);
        Ok(Paged { memory, bytes, of: PhantomData })
    }

    /// As [`zeroed`](Paged::zeroed), in memory of `source` if it has so much.
    pub(super) fn zeroed_in(len: usize, source: Option<&dyn SlotSource>) -> io::Result<Paged<T>> {
        let bytes = len.checked_mul(size_of::<T>()).ok_or(io::ErrorKind::OutOfMemory)?;
        let memory = source.and_then(|source| source.allocate(bytes.div_ceil(size_of::<f32>())));
        let Some(mut memory) = memory else { return Paged::zeroed(len) };
        memory.values_mut().fill(0.0);
        Ok(Paged { memory: Memory::Mapped(memory), bytes, of: PhantomData })
    }

    /// Its shared memory; `None` in host memory.
    pub(super) fn mapped(&self) -> Option<&dyn MappedMemory> {
        match &self.memory {
            Memory::System(_) => None,
            Memory::Mapped(memory) => Some(&**memory),
        }
    }
}

impl<T: Pod> Deref for Paged<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        let bytes = match &self.memory {
            Memory::System(memory) => memory,
            Memory::Mapped(memory) => bytemuck::cast_slice(memory.values()),
        };
        bytemuck::cast_slice(&bytes[..self.bytes])
    }
}

impl<T: Pod> DerefMut for Paged<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        let bytes = match &mut self.memory {
            Memory::System(memory) => memory,
            Memory::Mapped(memory) => bytemuck::cast_slice_mut(memory.values_mut()),
        };
        bytemuck::cast_slice_mut(&mut bytes[..self.bytes])
    }
}

impl<T> fmt::Debug for Paged<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Paged({} bytes)", self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_start_at_a_memory_page_and_are_zero() {
        for len in [0, 1, 5000, 1 << 20] {
            let mut buffer: Paged<u16> = Paged::zeroed(len).unwrap();
            assert!(buffer.len() == len && buffer.as_ptr().addr().is_multiple_of(4096));
            assert!(buffer.iter().all(|x| *x == 0));
            buffer.fill(1);
        }
        assert!(Paged::<f32>::zeroed(usize::MAX / 2).is_err());
    }
}
