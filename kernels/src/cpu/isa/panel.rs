//! Keys and values as they are stored: read as vectors, asked for, widened and narrowed.
#![expect(unsafe_code, reason = "vectors are loaded through pointers into whole chunks")]

use crate::cpu::caches::PrefetchHint;
use crate::cpu::isa::lanes::{LANES, Lanes};
use crate::cpu::isa::prefetch::{PrefetchOffset, prefetch_line, prefetch_range};
use crate::cpu::packed::LINE;
use crate::kv::Panel;
use std::ops::Range;

/// An element of keys or values that a vector can be made of.
pub(crate) trait Element: Copy + Default {
    /// # Safety
    /// As [`Lanes`] demands.
    unsafe fn load<V: Lanes>(at: *const Self) -> V;
}

macro_rules! element {
    ($ty:ty, $load:ident) => {
        impl Element for $ty {
            #[inline(always)]
            unsafe fn load<V: Lanes>(at: *const Self) -> V {
                // SAFETY: by the caller.
                unsafe { V::$load(at) }
            }
        }
    };
}
element!(f32, load);
element!(u16, load_f16);
element!(i8, load_i8);

/// Asks for all of a panel, so that it is near when it is read.
pub(crate) fn prefetch_panel(panel: Panel<'_>, into: PrefetchHint) {
    let Range { start, end } = panel.addresses();
    prefetch_range(start, 0..end.addr() - start.addr(), into);
}

/// The largest f32 of all whole lines, but for what is no number; with `ahead`, it asks for each line
/// so many bytes before it, into those caches.
///
/// # Safety
/// The machine has the instructions of `V`.
#[inline(always)]
pub(crate) unsafe fn stream_read<V: Lanes>(bytes: &[u8], ahead: Option<PrefetchOffset>) -> f32 {
    /// Lines whose maxima do not wait for each other.
    const INTERLEAVED: usize = 4;
    // SAFETY: by the caller, and each line has sixteen values.
    unsafe {
        let mut largest = [V::splat(f32::NEG_INFINITY); INTERLEAVED];
        let (blocks, rest) = bytes.as_chunks::<{ INTERLEAVED * LINE }>();
        for block in blocks {
            for (line, largest) in block.as_chunks::<LINE>().0.iter().zip(&mut largest) {
                if let Some(PrefetchOffset { bytes, into }) = ahead {
                    prefetch_line(line.as_ptr().wrapping_add(bytes), into);
                }
                *largest = V::load(line.as_ptr().cast()).max(*largest);
            }
        }
        for line in rest.as_chunks::<LINE>().0 {
            largest[0] = V::load(line.as_ptr().cast()).max(largest[0]);
        }
        let [a, b, c, d] = largest;
        a.max(b).max(c.max(d)).highest()
    }
}

/// Rows of a panel, to be written as f32 a distance apart.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KvConvert<'a> {
    pub(crate) from: Panel<'a>,
    pub(crate) cols: usize,
    /// Distance of rows in the output, a multiple of 16; columns from `cols` to the next multiple
    /// of 16 become zero.
    pub(crate) stride: usize,
}

/// # Safety
/// The machine has the instructions of `V`.
#[inline(always)]
pub(crate) unsafe fn widen<V: Lanes>(w: &KvConvert<'_>, out: &mut [f32]) {
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
/// As [`widen`].
#[inline(always)]
unsafe fn widen_rows<V: Lanes, E: Element>(w: &KvConvert<'_>, from: &[E], out: &mut [f32]) {
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

/// Rounds `x` to binary16; slices of equal length.
///
/// # Safety
/// The machine has the instructions of `V`.
#[inline(always)]
pub(crate) unsafe fn f32_to_f16<V: Lanes>(x: &[f32], out: &mut [u16]) {
    let (lines, tail) = x.as_chunks::<LANES>();
    let (outs, out_tail) = out.as_chunks_mut::<LANES>();
    for (x, out) in lines.iter().zip(outs) {
        // SAFETY: both have 16 values.
        unsafe { V::load(x.as_ptr()).store_f16(out.as_mut_ptr()) };
    }
    for (x, out) in tail.iter().zip(out_tail) {
        *out = crate::binary16::from_f32(*x);
    }
}
