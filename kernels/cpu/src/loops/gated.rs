//! Gated activations.
#![expect(unsafe_code, reason = "vectors are loaded through pointers into whole chunks")]

use super::curve::{GeluTanh, Vectors};
use crate::simd::f32x16::{F32x16, LANES};
use lapwing_model::op::Activation;
use std::f32::consts::LOG2_E;
use std::marker::PhantomData;

/// What becomes of a gate and what it gates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Gating {
    /// act(gate)·up.
    Activation(Activation),
    /// max(gate, 0)·up.
    Relu,
    /// g·σ(alpha·g)·(up within ± limit + offset) for g = min(gate, gate_limit).
    Clamped {
        /// Factor inside the sigmoid.
        alpha: f32,
        /// Largest gate.
        gate_limit: f32,
        /// Largest magnitude of up.
        limit: f32,
        /// What is added to up.
        offset: f32,
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
    use Activation::{GeluTanh as Gelu, Sigmoid as Sigma, Silu as Swish};
    // SAFETY: by the caller.
    unsafe {
        match kind {
            Gating::Activation(Swish) => all::<V, _>(Act::<Silu>::new(), gate, up, out),
            Gating::Activation(Gelu) => all::<V, _>(Act::<GeluTanh>::new(), gate, up, out),
            Gating::Activation(Sigma) => all::<V, _>(Act::<Sigmoid>::new(), gate, up, out),
            Gating::Relu => all::<V, _>(Relu, gate, up, out),
            Gating::Clamped { alpha, gate_limit, limit, offset } => {
                all::<V, _>(Clamped { alpha, gate_limit, limit, offset }, gate, up, out);
            }
        }
    }
}

/// A function of a gate and what it gates, a type for the reason that [`Vectors`] is one.
trait Gate: Copy {
    /// # Safety
    /// The machine has the instructions of `V`.
    unsafe fn of<V: F32x16>(self, gate: V, up: V) -> V;
}

/// # Safety
/// As [`gated`].
#[inline(always)]
unsafe fn all<V: F32x16, G: Gate>(by: G, gate: &[f32], up: &[f32], out: &mut [f32]) {
    let (gates, gate_tail) = gate.as_chunks::<LANES>();
    let (ups, up_tail) = up.as_chunks::<LANES>();
    let (outs, out_tail) = out.as_chunks_mut::<LANES>();
    for ((gate, up), out) in gates.iter().zip(ups).zip(outs) {
        // SAFETY: by the caller.
        unsafe { one::<V, G>(by, gate, up, out) };
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
    unsafe { one::<V, G>(by, gate, up, out) };
    out_tail[..n].copy_from_slice(&out[..n]);
}

/// # Safety
/// As [`gated`].
#[inline(always)]
unsafe fn one<V: F32x16, G: Gate>(
    by: G,
    gate: &[f32; LANES],
    up: &[f32; LANES],
    out: &mut [f32; LANES],
) {
    // SAFETY: by the caller; all have 16 values.
    unsafe { by.of(V::load(gate.as_ptr()), V::load(up.as_ptr())).store(out.as_mut_ptr()) };
}

/// act(gate)·up.
struct Act<A>(PhantomData<A>);

impl<A> Act<A> {
    #[inline(always)]
    fn new() -> Act<A> {
        Act(PhantomData)
    }
}

impl<A> Clone for Act<A> {
    fn clone(&self) -> Act<A> {
        *self
    }
}

impl<A> Copy for Act<A> {}

impl<A: Vectors> Gate for Act<A> {
    #[inline(always)]
    unsafe fn of<V: F32x16>(self, gate: V, up: V) -> V {
        // SAFETY: by the caller.
        unsafe { A::of(gate).mul(up) }
    }
}

/// max(gate, 0)·up.
#[derive(Clone, Copy)]
struct Relu;

impl Gate for Relu {
    #[inline(always)]
    unsafe fn of<V: F32x16>(self, gate: V, up: V) -> V {
        // SAFETY: by the caller.
        unsafe { V::splat(0.0).max(gate).mul(up) }
    }
}

/// [`Gating::Clamped`].
#[derive(Clone, Copy)]
struct Clamped {
    alpha: f32,
    gate_limit: f32,
    limit: f32,
    offset: f32,
}

impl Gate for Clamped {
    #[inline(always)]
    unsafe fn of<V: F32x16>(self, gate: V, up: V) -> V {
        let Clamped { alpha, gate_limit, limit, offset } = self;
        // SAFETY: by the caller.
        unsafe {
            let gate = at_most(gate, gate_limit);
            let up = V::splat(-limit).max(at_most(up, limit)).add(V::splat(offset));
            gate.mul(Sigmoid::of(gate.mul(V::splat(alpha)))).mul(up)
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
pub(super) struct Sigmoid;

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
