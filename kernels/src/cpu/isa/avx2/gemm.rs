//! The f32 product: up to 4 rows × 16 columns in registers.
#![expect(unsafe_code, reason = "calls into code compiled for more features than the crate")]

use crate::cpu::gemm::Gemm;
use std::arch::x86_64::*;

pub(super) fn gemm(g: &Gemm<'_>, c: &mut [f32]) {
    if g.is_empty(c) {
        return;
    }
    // SAFETY: reached only through the AVX2 table, which `Isa` hands out only when the
    // machine has the features; `is_empty` has checked that all elements exist.
    unsafe { body(g, c) }
}

/// # Safety
/// Lengths as `Gemm::is_empty` demands.
#[target_feature(enable = "avx2,fma")]
unsafe fn body(g: &Gemm<'_>, c: &mut [f32]) {
    for row in (0..g.rows).step_by(4) {
        for col in (0..g.width).step_by(16) {
            // SAFETY: the block starts inside the matrices, its rows are counted, and its
            // columns masked.
            unsafe {
                match g.rows - row {
                    1 => block::<1>(g, c, row, col),
                    2 => block::<2>(g, c, row, col),
                    3 => block::<3>(g, c, row, col),
                    _ => block::<4>(g, c, row, col),
                }
            }
        }
    }
}

/// # Safety
/// `row + R <= rows` and `col < width`; lengths as `Gemm::is_empty` demands.
#[target_feature(enable = "avx2,fma")]
unsafe fn block<const R: usize>(g: &Gemm<'_>, c: &mut [f32], row: usize, col: usize) {
    let left = _mm256_set1_epi32((g.width - col).min(16) as i32);
    let lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    let high = _mm256_add_epi32(lanes, _mm256_set1_epi32(8));
    let masks = [lanes, high].map(|lanes| _mm256_cmpgt_epi32(left, lanes));
    let a = g.a[row * g.a_stride..].as_ptr();
    let b = g.b[col..].as_ptr();
    let c = c[row * g.c_stride + col..].as_mut_ptr();
    let mut acc = [[_mm256_setzero_ps(); 2]; R];
    // SAFETY: rows and depth are in range by the caller, and lanes outside the width are
    // masked, so that nothing is read or written there.
    unsafe {
        for (r, acc) in acc.iter_mut().enumerate() {
            for v in 0..2 {
                let at = c.wrapping_add(r * g.c_stride + v * 8);
                acc[v] = _mm256_maskload_ps(at, masks[v]);
            }
        }
        for i in 0..g.depth {
            let line = b.wrapping_add(i * g.b_stride);
            let b0 = _mm256_maskload_ps(line, masks[0]);
            let b1 = _mm256_maskload_ps(line.wrapping_add(8), masks[1]);
            for (r, acc) in acc.iter_mut().enumerate() {
                let x = _mm256_set1_ps(*a.add(r * g.a_stride + i));
                acc[0] = _mm256_fmadd_ps(x, b0, acc[0]);
                acc[1] = _mm256_fmadd_ps(x, b1, acc[1]);
            }
        }
        for (r, acc) in acc.iter().enumerate() {
            for v in 0..2 {
                let at = c.wrapping_add(r * g.c_stride + v * 8);
                _mm256_maskstore_ps(at, masks[v], acc[v]);
            }
        }
    }
}
