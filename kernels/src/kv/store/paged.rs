//! Zeroed numbers in memory of their own, straight from the system.
//!
//! An allocator may serve a request from memory that was used before: it then has to write zeros to all
//! of it, and keeps it after the numbers are dropped. Keys and values are mostly never written.

use bytemuck::Pod;
use memmap2::MmapMut;
use std::fmt;
use std::io;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

/// `len` numbers; the first is at the start of a memory page, and pages that were never written occupy no
/// physical memory.
pub(super) struct Paged<T> {
    memory: MmapMut,
    bytes: usize,
    of: PhantomData<T>,
}

impl<T: Pod> Paged<T> {
    /// Maps `len` zeros.
    ///
    /// # Errors
    /// When the system has not that much memory.
    pub(super) fn zeroed(len: usize) -> io::Result<Paged<T>> {
        let bytes = len.checked_mul(size_of::<T>()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Paged { memory: MmapMut::map_anon(bytes.max(1))?, bytes, of: PhantomData })
    }
}

impl<T: Pod> Deref for Paged<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        bytemuck::cast_slice(&self.memory[..self.bytes])
    }
}

impl<T: Pod> DerefMut for Paged<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        bytemuck::cast_slice_mut(&mut self.memory[..self.bytes])
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
