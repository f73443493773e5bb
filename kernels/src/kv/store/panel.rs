//! Borrowed keys or values in their storage type.

use std::ops::Range;

/// Keys or values of a page and head in their storage type.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Panel<'a> {
    F32(&'a [f32]),
    F16(&'a [u16]),
    I8(&'a [i8]),
}

impl<'a> Panel<'a> {
    /// Address range of its bytes.
    pub(crate) fn addresses(&self) -> Range<*const u8> {
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
    pub(crate) fn skip(self, n: usize) -> Panel<'a> {
        match self {
            Panel::F32(x) => Panel::F32(&x[n..]),
            Panel::F16(x) => Panel::F16(&x[n..]),
            Panel::I8(x) => Panel::I8(&x[n..]),
        }
    }
}

/// A stored scale as f32.
pub(crate) fn scale_of(bytes: &[i8; 4]) -> f32 {
    f32::from_ne_bytes(bytes.map(i8::cast_unsigned))
}
