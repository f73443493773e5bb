//! Gated activations.
#![expect(unsafe_code, reason = "vectors are loaded through pointers into whole chunks")]

use super::curve::{GeluTanh, Vectors};
use crate::simd::f32x16::{F32x16, LANES};
use lapwing_model::op::Activation;
use std::f32::consts::LOG2_E;

/// `out = act(gate) · up` for slices of equal length.
///
/// # Safety
/// The machine has the instructions of `V`.
#[inline(always)]
pub(crate) unsafe fn gated<V: F32x16>(kind: Activation, gate: &[f32], up: &[f32], out: &mut [f32]) {
    // SAFETY: by the caller.
    unsafe {
        match kind {
            Activation::Silu => all::<V, Silu>(gate, up, out),
            Activation::GeluTanh => all::<V, GeluTanh>(gate, up, out),
            Activation::Sigmoid => all::<V, Sigmoid>(gate, up, out),
        }
    }
}

/// # Safety
/// As [`gated`].
#[inline(always)]
unsafe fn all<V: F32x16, A: Vectors>(gate: &[f32], up: &[f32], out: &mut [f32]) {
    let (gates, gate_tail) = gate.as_chunks::<LANES>();
    let (ups, up_tail) = up.as_chunks::<LANES>();
    let (outs, out_tail) = out.as_chunks_mut::<LANES>();
    for ((gate, up), out) in gates.iter().zip(ups).zip(outs) {
        // SAFETY: by the caller.
        unsafe { one::<V, A>(gate, up, out) };
    }
    let mut padded = [[0.0; LANES]; 3];
    let n = out_tail.len().min(gate_tail.len()).min(up_tail.len());
    if n == 0 {
        return;
    }
    let [gate, up, out] = &mut padded;
    gate[..n].copy_from_slice(&gate_tail[..n]);
    up[..n].copy_from_slice(&up_tail[..n]);
    // SAFETY: by the caller.
    unsafe { one::<V, A>(gate, up, out) };
    out_tail[..n].copy_from_slice(&out[..n]);
}

/// # Safety
/// As [`gated`].
#[inline(always)]
unsafe fn one<V: F32x16, A: Vectors>(
    gate: &[f32; LANES],
    up: &[f32; LANES],
    out: &mut [f32; LANES],
) {
    // SAFETY: by the caller; all have 16 values.
    unsafe { A::of(V::load(gate.as_ptr())).mul(V::load(up.as_ptr())).store(out.as_mut_ptr()) };
}

/// x·σ(x).
struct Silu;

impl Vectors for Silu {
    #[inline(always)]
    unsafe fn of<V: F32x16>(x: V) -> V {
        // SAFETY: by the caller.
        unsafe { x.mul(Sigmoid::of(x)) }
    }
}

/// 1 / (1 + exp(−x)).
struct Sigmoid;

impl Vectors for Sigmoid {
    #[inline(always)]
    unsafe fn of<V: F32x16>(x: V) -> V {
        // SAFETY: by the caller.
        unsafe {
            let below = x.mul(V::splat(-LOG2_E)).exp2().add(V::splat(1.0));
            V::splat(1.0).div(below)
        }
    }
}
