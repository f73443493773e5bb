//! Operands of kernels: where values are in a buffer.

use crate::session::{Arg, Buffer};

/// Bytes of a value.
pub(super) const F32: usize = size_of::<f32>();

/// Rows of f32 values in a buffer: element (row, col) is at `at + row * stride + col`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View<'a> {
    pub(crate) buffer: &'a Buffer,
    pub(crate) at: usize,
    pub(crate) stride: usize,
}

impl<'a> View<'a> {
    /// # Panics
    /// If `rows` rows of `width` values are not within the buffer.
    pub(super) fn check(&self, rows: usize, width: usize, what: &str) {
        let last = rows.saturating_sub(1).checked_mul(self.stride);
        let end = last.and_then(|last| last.checked_add(self.at)?.checked_add(width));
        let len = self.buffer.bytes() / F32;
        assert!(
            rows == 0 || end.is_some_and(|end| end <= len),
            "{what}: {rows} rows of {width} values, {} apart, from {} on, in a buffer of {len}",
            self.stride,
            self.at
        );
    }

    /// The same rows without the first `rows`.
    pub(super) fn after(self, rows: usize) -> View<'a> {
        View { at: self.at + rows * self.stride, ..self }
    }

    /// Whole rows in the buffer, if they have `width` values.
    pub(super) fn rows_of(&self, width: usize) -> usize {
        let len = (self.buffer.bytes() / F32).saturating_sub(self.at);
        match len.checked_sub(width) {
            Some(rest) => 1 + rest.checked_div(self.stride).unwrap_or(0),
            None => 0,
        }
    }

    pub(super) fn args(&self) -> [Arg<'a>; 3] {
        [Arg::Buffer(self.buffer), int(self.at), int(self.stride)]
    }
}

/// i32 values in a buffer from element `at` on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ints<'a> {
    pub(crate) buffer: &'a Buffer,
    pub(crate) at: usize,
}

impl<'a> Ints<'a> {
    /// The same numbers without the first `count`.
    pub(super) fn after(self, count: usize) -> Ints<'a> {
        Ints { at: self.at + count, ..self }
    }

    /// Values in the buffer from `at` on.
    pub(super) fn len(&self) -> usize {
        (self.buffer.bytes() / size_of::<i32>()).saturating_sub(self.at)
    }

    /// # Panics
    /// If there are fewer than `len` values.
    pub(super) fn check(&self, len: usize, what: &str) {
        assert!(len <= self.len(), "{what}: {len} numbers from a buffer that has {}", self.len());
    }
}

/// A number as an argument of a kernel.
///
/// # Panics
/// If it does not fit in 32 bits.
pub(super) fn int(value: usize) -> Arg<'static> {
    match i32::try_from(value) {
        Ok(value) => Arg::Int(value),
        Err(_) => panic!("{value} is too large for an argument of a kernel"),
    }
}
