//! Functions of each value.
#![expect(unsafe_code, reason = "vectors are loaded through pointers into whole chunks")]

use super::elementwise::exp;
use super::gated::Sigmoid;
use crate::simd::f32x16::{F32x16, LANES};
use crate::simd::scalar::mul_add;
use lapwing_model::op::{Curve, Xielu};
use std::f32::consts::{FRAC_1_SQRT_2, LOG2_E};

/// erfc(z) ≈ t·(a₁ + a₂t + … + a₅t⁴)·exp(−z²) with t = 1 / (1 + pz) for z ≥ 0, within 1.5e-7
/// (Abramowitz and Stegun, 7.1.26).
const P: f32 = 0.327_591_1;
const A: [f32; 5] = [0.254_829_6, -0.284_496_74, 1.421_413_7, -1.453_152, 1.061_405_4];

/// A function of each lane. It is a type, not a closure: the compiler may leave a closure out of line, where it is compiled without the
/// instruction set and calls a function for each instruction.
pub(super) trait Vectors {
    /// # Safety
    /// The machine has the instructions of `V`.
    unsafe fn of<V: F32x16>(x: V) -> V;
}

/// `out = curve(x)` for slices of equal length.
///
/// # Safety
/// The machine has the instructions of `V`.
#[inline(always)]
pub(crate) unsafe fn curve<V: F32x16, const FMA: bool>(curve: Curve, x: &[f32], out: &mut [f32]) {
    // SAFETY: by the caller.
    unsafe {
        match curve {
            Curve::Gelu => all::<V, Gelu>(x, out),
            Curve::GeluTanh => all::<V, GeluTanh>(x, out),
            Curve::ReluSquared => each(x, out, relu_squared),
            Curve::Xielu(parameters) => each(x, out, |x| xielu::<FMA>(x, parameters)),
            Curve::Clamp { limit } => each(x, out, |x| within(x, limit)),
            Curve::Sigmoid => all::<V, Sigmoid>(x, out),
            Curve::Softplus => each(x, out, softplus::<FMA>),
            Curve::Exp => each(x, out, exp::<FMA>),
        }
    }
}

#[inline(always)]
fn each(x: &[f32], out: &mut [f32], f: impl Fn(f32) -> f32) {
    out.iter_mut().zip(x).for_each(|(out, x)| *out = f(*x));
}

#[inline(always)]
fn relu_squared(x: f32) -> f32 {
    let above = if x < 0.0 { 0.0 } else { x };
    above * above
}

#[inline(always)]
fn xielu<const FMA: bool>(x: f32, p: Xielu) -> f32 {
    let low = if x < p.eps { x } else { p.eps };
    let curved =
        if x > 0.0 { p.positive * x * x } else { (exp::<FMA>(low) - 1.0 - x) * p.negative };
    curved + p.beta * x
}

/// NaN stays NaN.
#[inline(always)]
fn within(x: f32, limit: f32) -> f32 {
    let x = if x > limit { limit } else { x };
    if x < -limit { -limit } else { x }
}

/// max(x, 0) + ln(1 + u) with u = exp(−|x|). The logarithm is 2·artanh(s) with s = u / (2 + u) ≤ 1/3, whose series ends where s² is
/// within rounding.
#[inline(always)]
fn softplus<const FMA: bool>(x: f32) -> f32 {
    let (above, below) = if x < 0.0 { (0.0, x) } else { (x, -x) };
    let u = exp::<FMA>(below);
    let s = u / (2.0 + u);
    let square = s * s;
    let mut p = 1.0 / 15.0;
    for divisor in [13.0, 11.0, 9.0, 7.0, 5.0, 3.0, 1.0] {
        p = mul_add::<FMA>(p, square, 1.0 / divisor);
    }
    mul_add::<FMA>(2.0 * s, p, above)
}

/// # Safety
/// The machine has the instructions of `V`.
#[inline(always)]
unsafe fn all<V: F32x16, F: Vectors>(x: &[f32], out: &mut [f32]) {
    let (chunks, tail) = x.as_chunks::<LANES>();
    let (outs, out_tail) = out.as_chunks_mut::<LANES>();
    for (x, out) in chunks.iter().zip(outs) {
        // SAFETY: by the caller; both have 16 values.
        unsafe { F::of(V::load(x.as_ptr())).store(out.as_mut_ptr()) };
    }
    let n = tail.len().min(out_tail.len());
    let [mut padded, mut result] = [[0.0; LANES]; 2];
    padded[..n].copy_from_slice(&tail[..n]);
    // SAFETY: by the caller; both have 16 values.
    unsafe { F::of(V::load(padded.as_ptr())).store(result.as_mut_ptr()) };
    out_tail[..n].copy_from_slice(&result[..n]);
}

/// x·Φ(x).
struct Gelu;

impl Vectors for Gelu {
    #[inline(always)]
    unsafe fn of<V: F32x16>(x: V) -> V {
        // SAFETY: by the caller.
        unsafe {
            let (zero, one) = (V::splat(0.0), V::splat(1.0));
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
            zero.max(x).sub(size.mul(tail).mul(V::splat(0.5)))
        }
    }
}

/// x·(1 + tanh(√(2/π)·(x + 0.044715·x³))) / 2.
pub(super) struct GeluTanh;

impl Vectors for GeluTanh {
    #[inline(always)]
    unsafe fn of<V: F32x16>(x: V) -> V {
        // SAFETY: by the caller.
        unsafe {
            // (1 + tanh y) / 2 = σ(2y), which loses no precision for negative y.
            let cube = V::splat(0.044_715).mul(x).mul(x).fma(x, x);
            let below = cube.mul(V::splat(-2.0 * 0.797_884_6 * LOG2_E)).exp2().add(V::splat(1.0));
            x.mul(V::splat(1.0).div(below))
        }
    }
}
