//! One matmul of f32 activations.

use super::dispatch::Dispatch;
use super::inputs::QuantizedInputs;
use super::op::{Epilogue, Matmul};
use super::run::matmuls;
use crate::context::Cpu;
use crate::packed::OutputChannels;
use crate::quantize::InputSource;
use std::cell::RefCell;

thread_local! {
    static INPUTS: RefCell<QuantizedInputs> = RefCell::default();
}

/// `out[m, n] = x[m, k] · weight[n, k]ᵀ (+ bias[n])`.
///
/// For quantised weights, activations are quantised as llama.cpp does for the format, unless
/// [`Cpu::activations`] is f32; float weights take f32 activations.
///
/// # Panics
/// When `x` is not whole rows of k, or `out` or `bias` do not have m·n or n values.
pub fn matmul(
    ctx: &Cpu,
    weight: &OutputChannels<'_>,
    x: &[f32],
    bias: Option<&[f32]>,
    out: &mut [f32],
) {
    let k = weight.packed().cols();
    let m = x.len() / k;
    assert_eq!(x.len(), m * k, "x is not whole rows of {k}");
    let mut inputs = INPUTS.take();
    let dtype = weight.packed().dtype();
    inputs.fill(ctx, [dtype].into_iter(), &InputSource { x, k, norm: None });
    let (x, weight) = (inputs.rows(ctx, dtype, x), weight.clone());
    let product = Matmul { x, weight, bias, epilogue: Epilogue::Store };
    matmuls(ctx, &Dispatch::of(m), [(product, out)]);
    INPUTS.set(inputs);
}
