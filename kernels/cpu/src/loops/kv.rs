//! Keys and values as they are stored: loads, prefetch and conversions.
#![expect(unsafe_code, reason = "vectors are loaded through pointers into whole chunks")]

use crate::simd::f32x16::{F32x16, LANES};
use crate::simd::prefetch::{PrefetchHint, prefetch_range};
use lapwing_model::kv::Panel;
use std::ops::Range;

/// A stored element of keys or values.
pub(crate) trait KvElement: Copy + Default {
    /// # Safety
    /// As [`F32x16`] demands.
    unsafe fn load<V: F32x16>(at: *const Self) -> V;
}

macro_rules! element {
    ($ty:ty, $load:ident) => {
        impl KvElement for $ty {
            #[inline(always)]
            unsafe fn load<V: F32x16>(at: *const Self) -> V {
                // SAFETY: by the caller.
                unsafe { V::$load(at) }
            }
        }
    };
}
element!(f32, load);
element!(u16, load_f16);
element!(i8, load_i8);

/// Prefetches a whole panel.
pub(crate) fn prefetch_panel(panel: Panel<'_>, hint: PrefetchHint) {
    let Range { start, end } = panel.addresses();
    prefetch_range(start, 0..end.addr() - start.addr(), hint);
}

/// Conversion of the rows of a panel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KvConvert<'a> {
    pub(crate) from: Panel<'a>,
    pub(crate) cols: usize,
    /// Distance of rows in the output, a multiple of 16. Columns from `cols` to the next multiple
    /// of 16 become zero.
    pub(crate) stride: usize,
}

/// Widens a panel to f32.
///
/// # Safety
/// The machine has the instructions of `V`.
#[inline(always)]
pub(crate) unsafe fn kv_to_f32<V: F32x16>(w: &KvConvert<'_>, out: &mut [f32]) {
    // SAFETY: by the caller.
    unsafe {
        match w.from {
            Panel::F32(from) => widen_rows::<V, f32>(w, from, out),
            Panel::F16(from) => widen_rows::<V, u16>(w, from, out),
            Panel::I8(from) => widen_rows::<V, i8>(w, from, out),
        }
    }
}

/// # Safety
/// As [`kv_to_f32`].
#[inline(always)]
unsafe fn widen_rows<V: F32x16, E: KvElement>(w: &KvConvert<'_>, from: &[E], out: &mut [f32]) {
    for (from, out) in from.chunks_exact(w.cols).zip(out.chunks_mut(w.stride)) {
        let (lines, tail) = from.as_chunks::<LANES>();
        let (outs, _) = out.as_chunks_mut::<LANES>();
        for (from, out) in lines.iter().zip(outs.iter_mut()) {
            // SAFETY: both have 16 values.
            unsafe { E::load::<V>(from.as_ptr()).store(out.as_mut_ptr()) };
        }
        if let (false, Some(out)) = (tail.is_empty(), outs.get_mut(lines.len())) {
            let mut padded = [E::default(); LANES];
            padded[..tail.len()].copy_from_slice(tail);
            // SAFETY: both have 16 values.
            unsafe { E::load::<V>(padded.as_ptr()).store(out.as_mut_ptr()) };
        }
    }
}

/// Rounds `x` to the nearest binary16; both slices have the same length.
///
/// # Safety
/// The machine has the instructions of `V`.
#[inline(always)]
pub(crate) unsafe fn f32_to_f16<V: F32x16>(x: &[f32], out: &mut [u16]) {
    let (lines, tail) = x.as_chunks::<LANES>();
    let (outs, out_tail) = out.as_chunks_mut::<LANES>();
    for (x, out) in lines.iter().zip(outs) {
        // SAFETY: both have 16 values.
        unsafe { V::load(x.as_ptr()).store_f16(out.as_mut_ptr()) };
    }
    for (x, out) in tail.iter().zip(out_tail) {
        *out = lapwing_model::binary16::from_f32(*x);
    }
}
