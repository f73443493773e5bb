//! The matmuls of attention: Q·Kᵀ (scores) and P·V (weighted values).
#![expect(unsafe_code, reason = "pointer arithmetic over lengths that are checked once")]

mod block;

use crate::loops::kv::KvElement;
use crate::simd::f32x16::{F32x16, LANES};
use crate::simd::outline::Outlined;
use crate::simd::prefetch::PrefetchHint;
use block::{Block, Strided};
use lapwing_model::kv::Panel;
use std::marker::PhantomData;
use std::ops::Range;

/// `c = a · b` or `c += a · b`, with `a` `[rows][depth]`, `b` `[depth][16 · chunks]` and `c`
/// `[rows][16 · chunks]`. Rows are `a_stride`, `b_stride` and `c_stride` elements apart.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AttnMatmul<'a, A = f32, B = Panel<'a>> {
    pub(crate) a: &'a [A],
    pub(crate) a_stride: usize,
    pub(crate) b: B,
    pub(crate) b_stride: usize,
    pub(crate) dims: MatmulDims<'a>,
}

/// Dimensions, output and prefetch of an attention matmul.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MatmulDims<'a> {
    pub(crate) rows: usize,
    /// Products per sum.
    pub(crate) depth: usize,
    pub(crate) chunks: usize,
    pub(crate) c_stride: usize,
    /// Whether to add to `c` or to overwrite it.
    pub(crate) add: bool,
    /// The panel that is read after `b`, with the same layout: while a line of `b` is read, the
    /// same line of this panel is prefetched.
    pub(crate) next: Option<Panel<'a>>,
    /// Caches to prefetch into.
    pub(crate) prefetch_hint: PrefetchHint,
}

/// The inner step of a matmul for one vector of sums.
///
/// # Safety
/// Every method: the machine has the instructions of the implementing type, and pointers are valid
/// for the elements read: one of `a`, or 16 of `b` in each row of a step.
pub(crate) trait MicroKernel {
    /// 16 sums.
    type Sums: F32x16;
    /// Element of `a`; covers the depth of one step.
    type A: Copy;
    /// Element of `b`.
    type B: Copy;
    /// An element of `a`, broadcast.
    type Left: Copy;
    /// The elements of `b` that one element of `a` is multiplied with.
    type Right: Copy;
    /// Depth of one element of `a`.
    const A_DEPTH: usize;
    /// Depth of one element of `b`.
    const B_DEPTH: usize;

    /// Runs code in a function of its own, compiled for the instructions of this type.
    #[inline(always)]
    unsafe fn outline<O: Outlined>(code: O) {
        // SAFETY: by the caller.
        unsafe { Self::Sums::outline(code) }
    }
    /// Loads an element of `a`. With `TAIL`, only its first value is inside the depth.
    unsafe fn left<const TAIL: bool>(at: *const Self::A) -> Self::Left;
    /// Loads the elements of `b` for one element of `a`, from rows `stride` apart.
    unsafe fn right<const TAIL: bool>(at: *const Self::B, stride: usize) -> Self::Right;
    /// `sums + left · right`.
    unsafe fn add(left: Self::Left, right: Self::Right, sums: Self::Sums) -> Self::Sums;
}

/// f32: one value of the depth per step.
struct F32Kernel<V, E>(PhantomData<(V, E)>);

impl<V: F32x16, E: KvElement> MicroKernel for F32Kernel<V, E> {
    type Sums = V;
    type A = f32;
    type B = E;
    type Left = V;
    type Right = V;
    const A_DEPTH: usize = 1;
    const B_DEPTH: usize = 1;

    #[inline(always)]
    unsafe fn left<const TAIL: bool>(at: *const f32) -> V {
        // SAFETY: by the caller.
        unsafe { V::splat(*at) }
    }
    #[inline(always)]
    unsafe fn right<const TAIL: bool>(at: *const E, _: usize) -> V {
        // SAFETY: by the caller.
        unsafe { E::load(at) }
    }
    #[inline(always)]
    unsafe fn add(left: V, right: V, sums: V) -> V {
        // SAFETY: by the caller.
        unsafe { left.fma(right, sums) }
    }
}

impl<A, B> AttnMatmul<'_, A, B> {
    /// Whether there is nothing to compute. Checks every length that the pointer arithmetic relies
    /// on, given the depth of an element of `a` and of `b` and the length of `b`.
    ///
    /// # Panics
    /// When an element of `a`, `b` or `c` is outside its slice.
    fn is_empty(&self, a_depth: usize, b_depth: usize, b_len: usize, c: &[f32]) -> bool {
        let MatmulDims { rows, depth, chunks, c_stride, add, .. } = self.dims;
        if rows == 0 || chunks == 0 || (depth == 0 && add) {
            return true;
        }
        let width = chunks * LANES;
        let len = |rows: usize, stride: usize, cols: usize| match rows {
            0 => 0,
            _ => (rows - 1) * stride + cols,
        };
        let a_len = len(rows, self.a_stride, depth.div_ceil(a_depth));
        assert!(self.a.len() >= a_len, "a is too short");
        assert!(b_len >= len(depth.div_ceil(b_depth), self.b_stride, width), "b is too short");
        assert!(c.len() >= len(rows, c_stride, width), "c is too short");
        false
    }
}

/// Multiplies f32 values with a panel as stored.
///
/// # Safety
/// The machine has the instructions of `V`.
#[inline(always)]
pub(crate) unsafe fn attn_matmul<V: F32x16>(p: &AttnMatmul<'_>, c: &mut [f32]) {
    // SAFETY: by the caller.
    unsafe {
        match p.b {
            Panel::F32(b) => matmul_with::<F32Kernel<V, f32>, _>(p, b, c),
            Panel::F16(b) => matmul_with::<F32Kernel<V, u16>, _>(p, b, c),
            Panel::I8(b) => matmul_with::<F32Kernel<V, i8>, _>(p, b, c),
        }
    }
}

/// Multiplies with a micro-kernel; `b` is the data of the right operand. Every element of `c` is
/// accumulated over the depth in order, whatever the shape.
///
/// # Safety
/// The machine has the instructions of `M`.
#[inline(always)]
pub(crate) unsafe fn matmul_with<M: MicroKernel, B>(
    p: &AttnMatmul<'_, M::A, B>,
    b: &[M::B],
    c: &mut [f32],
) {
    if p.is_empty(M::A_DEPTH, M::B_DEPTH, b.len(), c) {
        return;
    }
    // Distance from what is read to what is prefetched.
    let next =
        p.dims.next.map(|next| next.addresses().start.addr().wrapping_sub(b.as_ptr().addr()));
    // SAFETY: `is_empty` has checked that all elements exist.
    unsafe { columns::<M, B>(p, next, b.as_ptr(), c.as_mut_ptr()) }
}

/// # Safety
/// `b` and `c` are those that [`AttnMatmul::is_empty`] has checked.
#[inline(always)]
unsafe fn columns<M: MicroKernel, B>(
    p: &AttnMatmul<'_, M::A, B>,
    next: Option<usize>,
    b: *const M::B,
    c: *mut f32,
) {
    // Several blocks of rows read a column one after another while it is in the first level.
    let together = if p.dims.rows <= M::Sums::ROWS { usize::MAX } else { 1 };
    let mut at = 0;
    while at < p.dims.chunks {
        let left = p.dims.chunks - at;
        // SAFETY: the blocks start inside the matrices and end before `chunks`.
        unsafe {
            // Without depth, `b` may be empty.
            let (b, c) = (b.wrapping_add(at * LANES), c.add(at * LANES));
            let columns = |width: usize| at..at + width * (left / width).min(together);
            at = match left {
                4.. if const { M::Sums::COLUMNS >= 4 } => {
                    rows::<M, B, 4>(p, next, b, c, columns(4))
                }
                3 if const { M::Sums::COLUMNS >= 4 } => rows::<M, B, 3>(p, next, b, c, columns(3)),
                2.. if const { M::Sums::COLUMNS >= 2 } => {
                    rows::<M, B, 2>(p, next, b, c, columns(2))
                }
                _ => rows::<M, B, 1>(p, next, b, c, columns(1)),
            };
        }
    }
}

/// Computes the chunks `columns`, C at a time, and returns their end.
///
/// # Safety
/// These chunks, from `b` and `c` on, are inside the matrices.
#[inline(always)]
unsafe fn rows<M: MicroKernel, B, const C: usize>(
    p: &AttnMatmul<'_, M::A, B>,
    next: Option<usize>,
    b: *const M::B,
    c: *mut f32,
    columns: Range<usize>,
) -> usize {
    let end = columns.end;
    let mut row = 0;
    while row < p.dims.rows {
        // SAFETY: as many rows are left as the block has.
        unsafe {
            let (a, c) = (p.a.as_ptr().add(row * p.a_stride), c.add(row * p.dims.c_stride));
            let a = Strided { at: a, stride: p.a_stride };
            let b = Strided { at: b, stride: p.b_stride };
            let block = Block::<M, C> { a, b, c, columns: columns.clone(), dims: &p.dims, next };
            row += match p.dims.rows - row {
                6.. if const { M::Sums::ROWS >= 6 } => block.run::<6>(),
                5.. if const { M::Sums::ROWS == 5 } => block.run::<5>(),
                4.. => block.run::<4>(),
                3 => block.run::<3>(),
                2 => block.run::<2>(),
                _ => block.run::<1>(),
            };
        }
    }
    end
}
