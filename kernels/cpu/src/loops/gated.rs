//! Gated activations.
#![expect(unsafe_code, reason = "vectors are loaded through pointers into whole chunks")]

use super::curve::gelu_tanh;
use crate::simd::f32x16::{F32x16, LANES};
use lapwing_model::op::Activation;
use std::f32::consts::LOG2_E;

/// What becomes of a gate and what it gates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Gating {
    /// act(gate)·up.
    Activation(Activation),
    /// max(gate, 0)·up.
    Relu,
    /// min(gate, limit)·σ(alpha·min(gate, limit))·(up within ± limit + 1).
    Clamped {
        /// Factor inside the sigmoid.
        alpha: f32,
        /// Largest gate, and largest magnitude of up.
        limit: f32,
    },
}

impl From<Activation> for Gating {
    fn from(activation: Activation) -> Gating {
        Gating::Activation(activation)
    }
}

/// `out = gating(gate, up)` for slices of equal length. What is no number stays none.
///
/// # Safety
/// The machine has the instructions of `V`.
#[inline(always)]
pub(crate) unsafe fn gated<V: F32x16>(kind: Gating, gate: &[f32], up: &[f32], out: &mut [f32]) {
    // SAFETY: by the caller.
    unsafe {
        match kind {
            Gating::Activation(Activation::Silu) => {
                all::<V>(gate, up, out, |gate, up| silu(gate).mul(up))
            }
            Gating::Activation(Activation::GeluTanh) => {
                all::<V>(gate, up, out, |gate, up| gelu_tanh(gate).mul(up))
            }
            Gating::Activation(Activation::Sigmoid) => {
                all::<V>(gate, up, out, |gate, up| sigmoid(gate).mul(up))
            }
            Gating::Relu => all::<V>(gate, up, out, |gate, up| V::splat(0.0).max(gate).mul(up)),
            Gating::Clamped { alpha, limit } => all::<V>(gate, up, out, |gate, up| {
                let gate = at_most(gate, limit);
                let up = V::splat(-limit).max(at_most(up, limit)).add(V::splat(1.0));
                gate.mul(sigmoid(gate.mul(V::splat(alpha)))).mul(up)
            }),
        }
    }
}

/// The smaller of both; NaN stays NaN.
///
/// # Safety
/// The machine has the instructions of `V`.
#[inline(always)]
unsafe fn at_most<V: F32x16>(x: V, limit: f32) -> V {
    // SAFETY: by the caller.
    unsafe {
        let zero = V::splat(0.0);
        zero.sub(V::splat(-limit).max(zero.sub(x)))
    }
}

/// # Safety
/// As [`gated`].
#[inline(always)]
unsafe fn all<V: F32x16>(gate: &[f32], up: &[f32], out: &mut [f32], act: impl Fn(V, V) -> V) {
    let (gates, gate_tail) = gate.as_chunks::<LANES>();
    let (ups, up_tail) = up.as_chunks::<LANES>();
    let (outs, out_tail) = out.as_chunks_mut::<LANES>();
    for ((gate, up), out) in gates.iter().zip(ups).zip(outs) {
        // SAFETY: by the caller.
        unsafe { one::<V>(gate, up, out, &act) };
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
    unsafe { one::<V>(gate, up, out, &act) };
    out_tail[..n].copy_from_slice(&out[..n]);
}

/// # Safety
/// As [`gated`].
#[inline(always)]
unsafe fn one<V: F32x16>(
    gate: &[f32; LANES],
    up: &[f32; LANES],
    out: &mut [f32; LANES],
    act: &impl Fn(V, V) -> V,
) {
    // SAFETY: all have 16 values.
    unsafe { act(V::load(gate.as_ptr()), V::load(up.as_ptr())).store(out.as_mut_ptr()) };
}

/// x·σ(x).
///
/// # Safety
/// The machine has the instructions of `V`.
#[inline(always)]
unsafe fn silu<V: F32x16>(x: V) -> V {
    // SAFETY: by the caller.
    unsafe { x.mul(sigmoid(x)) }
}

/// 1 / (1 + exp(−x)).
///
/// # Safety
/// The machine has the instructions of `V`.
#[inline(always)]
unsafe fn sigmoid<V: F32x16>(x: V) -> V {
    // SAFETY: by the caller.
    unsafe {
        let below = x.mul(V::splat(-LOG2_E)).exp2().add(V::splat(1.0));
        V::splat(1.0).div(below)
    }
}
