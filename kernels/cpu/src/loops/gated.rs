//! Gated activations.
#![expect(unsafe_code, reason = "vectors are loaded through pointers into whole chunks")]

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
            Activation::Silu => all::<V, false>(gate, up, out),
            Activation::GeluTanh => all::<V, true>(gate, up, out),
        }
    }
}

/// # Safety
/// As [`gated`].
#[inline(always)]
unsafe fn all<V: F32x16, const GELU: bool>(gate: &[f32], up: &[f32], out: &mut [f32]) {
    let (gates, gate_tail) = gate.as_chunks::<LANES>();
    let (ups, up_tail) = up.as_chunks::<LANES>();
    let (outs, out_tail) = out.as_chunks_mut::<LANES>();
    for ((gate, up), out) in gates.iter().zip(ups).zip(outs) {
        // SAFETY: by the caller.
        unsafe { one::<V, GELU>(gate, up, out) };
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
    unsafe { one::<V, GELU>(gate, up, out) };
    out_tail[..n].copy_from_slice(&out[..n]);
}

/// # Safety
/// As [`gated`].
#[inline(always)]
unsafe fn one<V: F32x16, const GELU: bool>(
    gate: &[f32; LANES],
    up: &[f32; LANES],
    out: &mut [f32; LANES],
) {
    // SAFETY: all have 16 values.
    unsafe {
        let (g, u) = (V::load(gate.as_ptr()), V::load(up.as_ptr()));
        let inner = match GELU {
            // (1 + tanh y) / 2 = σ(2y), which loses no precision for negative y.
            true => {
                let cube = V::splat(0.044_715).mul(g).mul(g).fma(g, g);
                cube.mul(V::splat(-2.0 * 0.797_884_6 * LOG2_E))
            }
            false => g.mul(V::splat(-LOG2_E)),
        };
        let below = inner.exp2().add(V::splat(1.0));
        g.mul(V::splat(1.0).div(below)).mul(u).store(out.as_mut_ptr());
    }
}
