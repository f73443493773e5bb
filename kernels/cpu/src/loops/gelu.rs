//! Exact GELU.
#![expect(unsafe_code, reason = "vectors are loaded through pointers into whole chunks")]

use crate::simd::f32x16::{F32x16, LANES};
use std::f32::consts::{FRAC_1_SQRT_2, LOG2_E};

/// erfc(z) ≈ t·(a₁ + a₂t + … + a₅t⁴)·exp(−z²) with t = 1 / (1 + pz) for z ≥ 0, within 1.5e-7
/// (Abramowitz and Stegun, 7.1.26).
const P: f32 = 0.327_591_1;
const A: [f32; 5] = [0.254_829_6, -0.284_496_74, 1.421_413_7, -1.453_152, 1.061_405_4];

/// `out = x · Φ(x)` for slices of equal length, with the distribution function Φ of the standard normal
/// distribution.
///
/// # Safety
/// The machine has the instructions of `V`.
#[inline(always)]
pub(crate) unsafe fn gelu<V: F32x16>(x: &[f32], out: &mut [f32]) {
    let (chunks, tail) = x.as_chunks::<LANES>();
    let (outs, out_tail) = out.as_chunks_mut::<LANES>();
    for (x, out) in chunks.iter().zip(outs) {
        // SAFETY: by the caller.
        unsafe { one::<V>(x, out) };
    }
    let n = tail.len().min(out_tail.len());
    let [mut padded, mut result] = [[0.0; LANES]; 2];
    padded[..n].copy_from_slice(&tail[..n]);
    // SAFETY: by the caller.
    unsafe { one::<V>(&padded, &mut result) };
    out_tail[..n].copy_from_slice(&result[..n]);
}

/// # Safety
/// As [`gelu`].
#[inline(always)]
unsafe fn one<V: F32x16>(x: &[f32; LANES], out: &mut [f32; LANES]) {
    // SAFETY: both have 16 values.
    unsafe {
        let (x, zero, one) = (V::load(x.as_ptr()), V::splat(0.0), V::splat(1.0));
        let size = zero.sub(x).max(x);
        let z = size.mul(V::splat(FRAC_1_SQRT_2));
        let t = one.div(z.fma(V::splat(P), one));
        let mut polynomial = V::splat(A[4]);
        for a in A[..4].iter().rev() {
            polynomial = polynomial.fma(t, V::splat(*a));
        }
        let falling = z.mul(z).mul(V::splat(-LOG2_E)).exp2();
        let tail = polynomial.mul(t).mul(falling);
        // Φ(|x|) = 1 − erfc(|x| / √2) / 2, and Φ(−|x|) is the rest. The larger of two values is the second
        // one if one of them is NaN.
        zero.max(x).sub(size.mul(tail).mul(V::splat(0.5))).store(out.as_mut_ptr());
    }
}
