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

/// Every element of `c` is accumulated over the depth in order, whatever the shape.
#[inline(always)]
pub(crate) fn body<const FMA: bool>(g: &Gemm<'_>, c: &mut [f32]) {
    let mut row = 0;
    while row < g.rows {
        row += match g.rows - row {
            4.. => rows::<FMA, 4>(g, c, row),
            2.. => rows::<FMA, 2>(g, c, row),
            _ => rows::<FMA, 1>(g, c, row),
        };
    }
}

#[inline(always)]
fn rows<const FMA: bool, const R: usize>(g: &Gemm<'_>, c: &mut [f32], row: usize) -> usize {
    let mut col = 0;
    while col < g.width {
        col += match g.width - col {
            32.. => block::<FMA, R, 32>(g, c, row, col),
            16.. => block::<FMA, R, 16>(g, c, row, col),
            _ => block::<FMA, R, 1>(g, c, row, col),
        };
    }
    R
}

#[inline(always)]
fn block<const FMA: bool, const R: usize, const W: usize>(
    g: &Gemm<'_>,
    c: &mut [f32],
    row: usize,
    col: usize,
) -> usize {
    let a: [&[f32]; R] = std::array::from_fn(|r| &g.a[(row + r) * g.a_stride..][..g.depth]);
    let mut acc = [[0.0f32; W]; R];
    for (r, acc) in acc.iter_mut().enumerate() {
        acc.copy_from_slice(&c[(row + r) * g.c_stride + col..][..W]);
    }
    for i in 0..g.depth {
        let b = &g.b[i * g.b_stride + col..][..W];
        for r in 0..R {
            for j in 0..W {
                acc[r][j] = madd::<FMA>(a[r][i], b[j], acc[r][j]);
            }
        }
    }
    for (r, acc) in acc.iter().enumerate() {
        c[(row + r) * g.c_stride + col..][..W].copy_from_slice(acc);
    }
    W
}
