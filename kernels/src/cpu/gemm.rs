//! The one f32 product: float weights, attention scores and attention values use it.

use crate::cpu::tile::madd;

/// `a` of `[rows][depth]` with row distance `a_stride`, `b` of `[depth][width]` with row
/// distance `b_stride`, to be added to `c` of `[rows][width]` with row distance `c_stride`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gemm<'a> {
    pub(crate) a: &'a [f32],
    pub(crate) a_stride: usize,
    pub(crate) b: &'a [f32],
    pub(crate) b_stride: usize,
    pub(crate) c_stride: usize,
    pub(crate) rows: usize,
    pub(crate) depth: usize,
    pub(crate) width: usize,
}

impl Gemm<'_> {
    /// Whether there is nothing to add; checks everything that a kernel's pointer
    /// arithmetic relies on.
    ///
    /// # Panics
    /// When an element of `a`, `b` or `c` is outside its slice.
    pub(crate) fn is_empty(&self, c: &[f32]) -> bool {
        let len = |rows: usize, stride: usize, cols: usize| (rows - 1) * stride + cols;
        if self.rows == 0 || self.depth == 0 || self.width == 0 {
            return true;
        }
        assert!(self.a.len() >= len(self.rows, self.a_stride, self.depth), "a is too short");
        assert!(self.b.len() >= len(self.depth, self.b_stride, self.width), "b is too short");
        assert!(c.len() >= len(self.rows, self.c_stride, self.width), "c is too short");
        false
    }
}

/// Every element of `c` is accumulated over the depth in order, whatever the shape.
#[inline(always)]
pub(crate) fn body<const FMA: bool>(g: &Gemm<'_>, c: &mut [f32]) {
    if g.is_empty(c) {
        return;
    }
    for row in 0..g.rows {
        let a = &g.a[row * g.a_stride..][..g.depth];
        let c = &mut c[row * g.c_stride..][..g.width];
        for (block, c) in c.chunks_mut(16).enumerate() {
            let b = &g.b[block * 16..];
            match c.as_chunks_mut::<16>().0 {
                [c] => columns::<FMA, 16>(a, (b, g.b_stride), c),
                _ => {
                    for (j, c) in c.as_chunks_mut::<1>().0.iter_mut().enumerate() {
                        columns::<FMA, 1>(a, (&b[j..], g.b_stride), c);
                    }
                }
            }
        }
    }
}

#[inline(always)]
fn columns<const FMA: bool, const W: usize>(
    a: &[f32],
    (b, stride): (&[f32], usize),
    c: &mut [f32; W],
) {
    let mut acc = *c;
    for (a, b) in a.iter().zip(b.chunks(stride)) {
        if let Some(b) = b.first_chunk::<W>() {
            for j in 0..W {
                acc[j] = madd::<FMA>(*a, b[j], acc[j]);
            }
        }
    }
    *c = acc;
}
