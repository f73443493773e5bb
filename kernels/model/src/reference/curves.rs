//! Functions of one value.

use crate::op::{Activation, Curve, Xielu};

/// `x · Φ(x)`, the exact GELU. Φ is integrated numerically from 0, by Simpson's rule.
pub fn gelu(x: f64) -> f64 {
    const STEPS: usize = 2000;
    let end = x.abs().min(40.0);
    let step = end / STEPS as f64;
    let density = |t: f64| (-t * t / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt();
    let inner: f64 =
        (1..STEPS).map(|i| density(i as f64 * step) * if i % 2 == 1 { 4.0 } else { 2.0 }).sum();
    let half = (density(0.0) + inner + density(end)) * step / 3.0;
    x * if x < 0.0 { 0.5 - half } else { 0.5 + half }
}

/// `x · σ(x)`.
pub fn silu(x: f64) -> f64 {
    x / (1.0 + (-x).exp())
}

/// `σ(x)`.
pub fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// A gating function.
pub fn activation(kind: Activation, x: f64) -> f64 {
    match kind {
        Activation::Silu => silu(x),
        Activation::GeluTanh => gelu_tanh(x),
        Activation::Sigmoid => sigmoid(x),
    }
}

/// GELU, tanh approximation.
pub fn gelu_tanh(x: f64) -> f64 {
    0.5 * x * (1.0 + ((2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x.powi(3))).tanh())
}

/// `max(x, 0)²`.
pub fn relu_squared(x: f64) -> f64 {
    x.max(0.0).powi(2)
}

/// xIELU.
pub fn xielu(x: f64, parameters: Xielu) -> f64 {
    let Xielu { positive, negative, beta, eps } = parameters;
    let [positive, negative, beta, eps] = [positive, negative, beta, eps].map(f64::from);
    let curved = if x > 0.0 { positive * x * x } else { negative * (x.min(eps).exp_m1() - x) };
    curved + beta * x
}

/// `ln(1 + exp(x))`.
pub fn softplus(x: f64) -> f64 {
    x.max(0.0) + (-x.abs()).exp().ln_1p()
}

/// A function of a value.
pub fn curve(kind: Curve, x: f64) -> f64 {
    match kind {
        Curve::Gelu => gelu(x),
        Curve::GeluTanh => gelu_tanh(x),
        Curve::ReluSquared => relu_squared(x),
        Curve::Xielu(parameters) => xielu(x, parameters),
        Curve::Clamp { limit } => x.clamp(-f64::from(limit), f64::from(limit)),
        Curve::Sigmoid => sigmoid(x),
        Curve::Softplus => softplus(x),
        Curve::Exp => x.exp(),
    }
}

/// `cap · tanh(x / cap)`.
pub fn soft_cap(x: f64, cap: f64) -> f64 {
    cap * (x / cap).tanh()
}
