//! Keys or values as they are stored, lent to be read.

use std::ops::Range;

/// Stored keys or values.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Panel<'a> {
    F32(&'a [f32]),
    F16(&'a [u16]),
    I8(&'a [i8]),
}

impl<'a> Panel<'a> {
    /// Where its bytes lie.
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

/// Value of one stored scale.
pub(crate) fn scale_of(bytes: &[i8; 4]) -> f32 {
    f32::from_ne_bytes(bytes.map(i8::cast_unsigned))
}
