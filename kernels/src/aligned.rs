//! Buffers aligned to a cache line, so that no vector load or store crosses two lines, or to a memory
//! page, so that each block of page size needs one address translation.

use std::ops::{Deref, DerefMut};

/// Bytes of a cache line, and of the widest vector.
const LINE: usize = 64;

/// Bytes of the smallest memory page of any system.
const PAGE: usize = 4096;

/// Values in memory, the first at the start of a cache line.
#[derive(Debug, Default)]
pub(crate) struct Aligned<T> {
    data: Vec<T>,
    start: usize,
    len: usize,
}

impl<T: Copy + Default> Aligned<T> {
    /// `len` values, the first at the start of a memory page. `zeroed(n)` returns n zeros.
    pub(crate) fn paged(len: usize, zeroed: impl FnOnce(usize) -> Vec<T>) -> Aligned<T> {
        Aligned::new(PAGE, len, zeroed)
    }

    fn new(to: usize, len: usize, zeroed: impl FnOnce(usize) -> Vec<T>) -> Aligned<T> {
        let data = zeroed(len + to / size_of::<T>());
        let start = data.as_ptr().align_offset(to);
        Aligned { data, start, len }
    }

    /// Ensures a length of at least `len`; the contents are lost if the buffer grows.
    pub(crate) fn room(&mut self, len: usize) {
        if self.len < len {
            *self = Aligned::new(LINE, len, |len| vec![T::default(); len]);
        }
    }
}

impl<T> Deref for Aligned<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.data[self.start..self.start + self.len]
    }
}

impl<T> DerefMut for Aligned<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.data[self.start..self.start + self.len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_starts_at_a_cache_line() {
        let mut buffer = Aligned::<u16>::default();
        buffer.room(0);
        assert!(buffer.is_empty());
        for len in [1, 33, 1000, 7] {
            buffer.room(len);
            assert!(buffer.len() >= len && buffer.as_ptr().addr().is_multiple_of(LINE));
            buffer.fill(1);
        }
        assert_eq!(buffer.len(), 1000);
    }

    #[test]
    fn a_paged_buffer_starts_at_a_memory_page() {
        for len in [0, 1, 5000, 1 << 20] {
            let mut buffer = Aligned::paged(len, |len| vec![0u16; len]);
            assert!(buffer.len() == len && buffer.as_ptr().addr().is_multiple_of(PAGE));
            buffer.fill(1);
        }
    }
}
