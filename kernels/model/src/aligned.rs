//! Buffers aligned to a cache line, so that no vector load or store crosses two lines.

use std::ops::{Deref, DerefMut};

/// Bytes of a cache line, and of the widest vector.
const LINE: usize = 64;

/// Values in memory, the first at the start of a cache line.
#[derive(Debug, Default)]
pub struct Aligned<T> {
    data: Vec<T>,
    start: usize,
    len: usize,
}

impl<T: Copy + Default> Aligned<T> {
    /// Ensures a length of at least `len`; the contents are lost if the buffer grows.
    pub fn room(&mut self, len: usize) {
        if self.len < len {
            let data = vec![T::default(); len + LINE / size_of::<T>()];
            let start = data.as_ptr().align_offset(LINE);
            *self = Aligned { data, start, len };
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
}
