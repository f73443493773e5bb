//! The product of attention: scores and weighted values.
#![expect(unsafe_code, reason = "pointer arithmetic over lengths that are checked once")]

use crate::cpu::isa::lanes::{LANES, Lanes};
use crate::kv::Panel;
use std::ops::Range;

/// `c = a · b` or `c += a · b`, with `a` of `[rows][depth]`, `b` of `[depth][16 · chunks]` and
/// `c` of `[rows][16 · chunks]`, rows being some distance apart.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Product<'a> {
    pub(crate) a: &'a [f32],
    pub(crate) a_stride: usize,
    pub(crate) b: Panel<'a>,
    pub(crate) b_stride: usize,
    pub(crate) c_stride: usize,
    pub(crate) rows: usize,
    pub(crate) depth: usize,
    pub(crate) chunks: usize,
    /// Whether to add to `c`.
    pub(crate) add: bool,
    /// What is read after `b`: asked for bit by bit meanwhile.
    pub(crate) next: Option<Panel<'a>>,
}

impl Product<'_> {
    /// Whether there is nothing to write; checks all that the pointer arithmetic relies on.
    ///
    /// # Panics
    /// When an element of `a`, `b` or `c` is outside its slice.
    fn is_empty(&self, c: &[f32]) -> bool {
        if self.rows == 0 || self.chunks == 0 || (self.depth == 0 && self.add) {
            return true;
        }
        let width = self.chunks * LANES;
        let len = |rows: usize, stride: usize, cols: usize| match rows {
            0 => 0,
            _ => (rows - 1) * stride + cols,
        };
        assert!(self.a.len() >= len(self.rows, self.a_stride, self.depth), "a is too short");
        assert!(self.b.len() >= len(self.depth, self.b_stride, width), "b is too short");
        assert!(c.len() >= len(self.rows, self.c_stride, width), "c is too short");
        false
    }
}

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

/// Every element of `c` is accumulated over the depth in order, whatever the shape.
///
/// # Safety
/// The machine has the instructions of `V`.
#[inline(always)]
pub(crate) unsafe fn product<V: Lanes>(p: &Product<'_>, c: &mut [f32]) {
    if p.is_empty(c) {
        return;
    }
    let ahead = Ahead::new(p);
    // SAFETY: `is_empty` has checked that all elements exist.
    unsafe {
        match p.b {
            Panel::F32(b) => columns::<V, f32>((p, ahead), b.as_ptr(), c.as_mut_ptr()),
            Panel::F16(b) => columns::<V, u16>((p, ahead), b.as_ptr(), c.as_mut_ptr()),
            Panel::I8(b) => columns::<V, i8>((p, ahead), b.as_ptr(), c.as_mut_ptr()),
        }
    }
}

/// Bytes of a cache line.
const LINE: usize = 64;

/// Lines that are asked for with each step of the depth.
#[derive(Clone, Copy)]
struct Ahead {
    start: *const u8,
    lines: usize,
}

impl Ahead {
    /// Nothing.
    const NONE: Ahead = Ahead { start: std::ptr::null(), lines: 0 };

    fn new(p: &Product<'_>) -> Ahead {
        p.next.map_or(Ahead::NONE, |next| {
            let Range { start, end } = next.addresses();
            let bytes = end.addr() - start.addr();
            Ahead { start, lines: bytes.div_ceil(LINE * p.depth.max(1)) }
        })
    }

    #[inline(always)]
    fn ask<V: Lanes>(self, step: usize) {
        for line in step * self.lines..(step + 1) * self.lines {
            V::prefetch(self.start.wrapping_add(line * LINE));
        }
    }
}

/// # Safety
/// `b` and `c` are those that [`Product::is_empty`] has checked.
#[inline(always)]
unsafe fn columns<V: Lanes, E: Element>(
    (p, mut ahead): (&Product<'_>, Ahead),
    b: *const E,
    c: *mut f32,
) {
    let mut at = 0;
    while at < p.chunks {
        // SAFETY: the blocks start inside the matrices and end before `chunks`.
        unsafe {
            // Without depth, `b` may be empty.
            let (b, c) = (b.wrapping_add(at * LANES), c.add(at * LANES));
            at += match p.chunks - at {
                4.. if V::COLUMNS >= 4 => rows::<V, E, 4>((p, ahead), b, c),
                3 if V::COLUMNS >= 4 => rows::<V, E, 3>((p, ahead), b, c),
                2.. if V::COLUMNS >= 2 => rows::<V, E, 2>((p, ahead), b, c),
                _ => rows::<V, E, 1>((p, ahead), b, c),
            };
            ahead = Ahead::NONE;
        }
    }
}

/// # Safety
/// `C` chunks from `b` and `c` on are inside the matrices.
#[inline(always)]
unsafe fn rows<V: Lanes, E: Element, const C: usize>(
    (p, mut ahead): (&Product<'_>, Ahead),
    b: *const E,
    c: *mut f32,
) -> usize {
    let mut row = 0;
    while row < p.rows {
        // SAFETY: as many rows are left as the block has.
        unsafe {
            let (a, c) = (p.a.as_ptr().add(row * p.a_stride), c.add(row * p.c_stride));
            row += match p.rows - row {
                6.. => block::<V, E, 6, C>((p, ahead), a, b, c),
                4.. => block::<V, E, 4, C>((p, ahead), a, b, c),
                3 => block::<V, E, 3, C>((p, ahead), a, b, c),
                2 => block::<V, E, 2, C>((p, ahead), a, b, c),
                _ => block::<V, E, 1, C>((p, ahead), a, b, c),
            };
            ahead = Ahead::NONE;
        }
    }
    C
}

/// # Safety
/// `R` rows and `C` chunks from the pointers on are inside the matrices.
#[inline(always)]
unsafe fn block<V: Lanes, E: Element, const R: usize, const C: usize>(
    (p, ahead): (&Product<'_>, Ahead),
    a: *const f32,
    b: *const E,
    c: *mut f32,
) -> usize {
    // SAFETY: by the caller; the depth is that of `a` and `b`.
    unsafe {
        let mut acc = [[V::splat(0.0); C]; R];
        if p.add {
            for (r, acc) in acc.iter_mut().enumerate() {
                for (j, acc) in acc.iter_mut().enumerate() {
                    *acc = V::load(c.add(r * p.c_stride + j * LANES));
                }
            }
        }
        for i in 0..p.depth {
            ahead.ask::<V>(i);
            let line = b.add(i * p.b_stride);
            let mut w = [V::splat(0.0); C];
            for (j, w) in w.iter_mut().enumerate() {
                *w = E::load::<V>(line.add(j * LANES));
            }
            for (r, acc) in acc.iter_mut().enumerate() {
                let x = V::splat(*a.add(r * p.a_stride + i));
                for (w, acc) in w.iter().zip(acc) {
                    *acc = x.fma(*w, *acc);
                }
            }
        }
        for (r, acc) in acc.iter().enumerate() {
            for (j, acc) in acc.iter().enumerate() {
                acc.store(c.add(r * p.c_stride + j * LANES));
            }
        }
    }
    R
}

/// Asks for all of a panel, so that it is near when it is read.
#[inline(always)]
pub(crate) fn prefetch<V: Lanes>(panel: Panel<'_>) {
    let Range { start, end } = panel.addresses();
    for at in (0..end.addr() - start.addr()).step_by(LINE) {
        V::prefetch(start.wrapping_add(at));
    }
}

/// Rows of a panel, to be written as f32 a distance apart.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Widen<'a> {
    pub(crate) from: Panel<'a>,
    pub(crate) cols: usize,
    /// Distance of rows in the output, a multiple of 16; columns from `cols` to the next multiple
    /// of 16 become zero.
    pub(crate) stride: usize,
}

/// # Safety
/// The machine has the instructions of `V`.
#[inline(always)]
pub(crate) unsafe fn widen<V: Lanes>(w: &Widen<'_>, out: &mut [f32]) {
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
unsafe fn widen_rows<V: Lanes, E: Element>(w: &Widen<'_>, from: &[E], out: &mut [f32]) {
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
pub(crate) unsafe fn narrow<V: Lanes>(x: &[f32], out: &mut [u16]) {
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
