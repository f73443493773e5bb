//! A register block of float weights: some rows × one, two or four tiles.

use crate::loops::prefetch_stream::PrefetchStream;
use crate::packed::layout::{LINE, TILE};
use crate::simd::f32x16::F32x16;
use crate::simd::outline::Outlined;
use crate::simd::prefetch::{PrefetchHint, prefetch_line};
use std::marker::PhantomData;
use std::ops::Range;

/// A stored float format.
pub(super) trait FloatFormat {
    const BYTES: usize;

    /// Loads 16 values.
    ///
    /// # Safety
    /// As [`F32x16`] demands.
    unsafe fn load<V: F32x16>(from: *const u8) -> V;
}

macro_rules! floats {
    ($($name:ident: $bytes:literal, $load:ident;)*) => {$(
        pub(super) struct $name;
        impl FloatFormat for $name {
            const BYTES: usize = $bytes;
            #[inline(always)]
            unsafe fn load<V: F32x16>(from: *const u8) -> V {
                // SAFETY: by the caller.
                unsafe { V::$load(from.cast()) }
            }
        }
    )*};
}

floats! {
    F32: 4, load;
    F16: 2, load_f16;
    Bf16: 2, load_bf16;
}

/// A block: some rows × some columns of T tiles.
#[derive(Clone)]
pub(super) struct Block<const T: usize> {
    pub(super) tiles: [*const u8; T],
    pub(super) columns: Range<usize>,
    pub(super) x: *const f32,
    /// Values from one row of `x` to the next.
    pub(super) k: usize,
    /// Whether the sums start at zero; otherwise they continue those in the output.
    pub(super) is_first: bool,
    pub(super) out: *mut f32,
    /// Values from one row of `out` to the next.
    pub(super) stride: usize,
    pub(super) prefetch: PrefetchLines,
}

/// What a block prefetches: once in a number of columns, the next [`PREFETCH_LINES`] lines of its tiles.
#[derive(Clone, Copy)]
pub(super) struct PrefetchLines {
    pub(super) stream: PrefetchStream,
    pub(super) hint: PrefetchHint,
    /// Bytes from one tile to the next.
    pub(super) tile_stride: usize,
    /// The byte of a tile whose successor, a fixed distance ahead, is prefetched first.
    pub(super) from: usize,
    /// Columns between two prefetches.
    pub(super) every: usize,
}

/// Lines that are prefetched at once, of all tiles together.
pub(super) const PREFETCH_LINES: usize = 8;

impl Block<1> {
    /// # Safety
    /// As [`Block::run`], for `rows` rows, at most 6.
    #[inline(always)]
    pub(super) unsafe fn run_rows<V: F32x16, F: FloatFormat>(&self, rows: usize) {
        // SAFETY: by the caller.
        unsafe {
            match rows {
                1 => self.run::<V, F, 1>(),
                2 => self.run::<V, F, 2>(),
                3 => self.run::<V, F, 3>(),
                4 => self.run::<V, F, 4>(),
                5 => self.run::<V, F, 5>(),
                _ => self.run::<V, F, 6>(),
            }
        }
    }
}

impl<const T: usize> Block<T> {
    /// Computes R rows, in a function of its own.
    ///
    /// # Safety
    /// Each tile has the columns; R rows of values, `k` apart, are at `x`, and R of 16·T values,
    /// `stride` apart, at `out`; the machine has the instructions of `V`.
    #[inline(always)]
    pub(super) unsafe fn run<V: F32x16, F: FloatFormat, const R: usize>(&self) {
        // SAFETY: by the caller.
        unsafe { V::outline(RowsOf::<V, F, R, T>(self.clone(), PhantomData)) }
    }

    /// # Safety
    /// As [`Block::run`].
    #[inline(always)]
    unsafe fn rows<V: F32x16, F: FloatFormat, const R: usize>(&self) {
        // SAFETY: by the caller.
        unsafe {
            let mut acc = [[V::splat(0.0); T]; R];
            if !self.is_first {
                for (r, acc) in acc.iter_mut().enumerate() {
                    for (t, acc) in acc.iter_mut().enumerate() {
                        *acc = V::load(self.out.add(r * self.stride + t * TILE));
                    }
                }
            }
            let Range { start: mut next, end } = self.columns;
            let mut at = self.prefetch.from;
            while next < end {
                self.prefetch.lines(&self.tiles, at);
                at += PREFETCH_LINES / T * LINE;
                let columns = next..end.min(next + self.prefetch.every);
                next = columns.end;
                for i in columns {
                    for (t, tile) in self.tiles.iter().enumerate() {
                        let w = F::load::<V>(tile.add(i * TILE * F::BYTES));
                        for (r, acc) in acc.iter_mut().enumerate() {
                            acc[t] = V::splat(*self.x.add(r * self.k + i)).fma(w, acc[t]);
                        }
                    }
                }
            }
            for (r, acc) in acc.iter().enumerate() {
                for (t, acc) in acc.iter().enumerate() {
                    acc.store(self.out.add(r * self.stride + t * TILE));
                }
            }
        }
    }
}

/// A [`Block`] of R rows.
struct RowsOf<V, F, const R: usize, const T: usize>(Block<T>, PhantomData<(V, F)>);

impl<V: F32x16, F: FloatFormat, const R: usize, const T: usize> Outlined for RowsOf<V, F, R, T> {
    #[inline(always)]
    unsafe fn run(self) {
        // SAFETY: as [`Block::run`] demands.
        unsafe { self.0.rows::<V, F, R>() }
    }
}

impl PrefetchLines {
    /// Prefetches for the lines from byte `at` of each tile on.
    #[inline(always)]
    fn lines<const T: usize>(&self, tiles: &[*const u8; T], at: usize) {
        for line in 0..PREFETCH_LINES / T {
            for tile in tiles {
                let at = self.stream.address::<T>(*tile, at + line * LINE, self.tile_stride);
                prefetch_line(at, self.hint);
            }
        }
    }
}
