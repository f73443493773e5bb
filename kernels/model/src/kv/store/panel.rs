//! Borrowed keys or values in their storage type.

use std::ops::Range;

/// Keys or values of a page and head in their storage type.
#[derive(Clone, Copy, Debug)]
pub enum Panel<'a> {
    /// f32.
    F32(&'a [f32]),
    /// Bits of binary16.
    F16(&'a [u16]),
    /// int8, without their scales.
    I8(&'a [i8]),
}

impl<'a> Panel<'a> {
    /// Address range of its bytes.
    pub fn addresses(&self) -> Range<*const u8> {
        fn of<T>(x: &[T]) -> Range<*const u8> {
            let Range { start, end } = x.as_ptr_range();
            start.cast()..end.cast()
        }
        match self {
            Panel::F32(x) => of(x),
            Panel::F16(x) => of(x),
            Panel::I8(x) => of(x),
        }
    }

    /// Without the first `n` elements.
    pub fn skip(self, n: usize) -> Panel<'a> {
        match self {
            Panel::F32(x) => Panel::F32(&x[n..]),
            Panel::F16(x) => Panel::F16(&x[n..]),
            Panel::I8(x) => Panel::I8(&x[n..]),
        }
    }
}

/// A stored scale as f32.
pub fn scale_of(bytes: &[i8; 4]) -> f32 {
    f32::from_ne_bytes(bytes.map(i8::cast_unsigned))
}
