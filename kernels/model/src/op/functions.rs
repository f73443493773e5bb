//! Functions of values, and of positions.

/// A function of each value, such as the activation of a feed-forward block without a gate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Curve {
    /// x·Φ(x) with the distribution function Φ of the standard normal distribution: the exact GELU, not its tanh
    /// approximation.
    Gelu,
    /// The approximation of [`Activation::GeluTanh`](super::Activation::GeluTanh).
    GeluTanh,
    /// max(x, 0)² (So et al., 2021).
    ReluSquared,
    /// xIELU (Huang and Schlag, 2024).
    Xielu(Xielu),
    /// The value, within ± the limit.
    Clamp {
        /// Largest magnitude of the result.
        limit: f32,
    },
    /// 1 / (1 + exp(−x)).
    Sigmoid,
    /// ln(1 + exp(x)).
    Softplus,
    /// exp(x).
    Exp,
}

/// Parameters of xIELU: positive·x² + β·x above 0, and negative·(exp(min(x, ε)) − 1 − x) + β·x elsewhere.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Xielu {
    /// Factor of the square.
    pub positive: f32,
    /// Factor of the exponential.
    pub negative: f32,
    /// Factor of x itself.
    pub beta: f32,
    /// Largest argument of the exponential, just below 0.
    pub eps: f32,
}

/// A factor on queries beyond the trained context: 1 + scale·ln(⌊(position + offset) / length⌋ + 1) (Llama 4, Ministral 3).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Temperature {
    /// Factor on the logarithm.
    pub scale: f32,
    /// Positions after which the factor grows.
    pub length: usize,
    /// Added to the position.
    pub offset: usize,
}

impl Temperature {
    /// The factor at a position.
    pub fn factor(&self, position: u32) -> f32 {
        let turns = ((position as usize + self.offset) / self.length.max(1) + 1) as f32;
        1.0 + self.scale * turns.ln()
    }
}
