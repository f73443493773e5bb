//! A matmul, its input and its epilogue.

use crate::cpu::loops::quantize::QuantScheme;
use crate::cpu::packed::OutputChannels;
use crate::cpu::quantize::Q8Rows;
use crate::op::Activation;

/// Most products of one dispatch.
pub(crate) const MATMULS_MAX: usize = 4;

/// Activations as a weight's format wants them.
#[derive(Clone, Copy, Debug)]
pub(crate) enum GemmInput<'a> {
    /// Rounded, by the kind that [`QuantScheme::of`] gives for the weights' format.
    Q8(Q8Rows<'a>),
    /// As they are, `[m][k]`: quantised weights are widened for them.
    F32(&'a [f32]),
}

/// What is done with a product before it is written.
#[derive(Clone, Debug)]
pub(crate) enum Epilogue<'a> {
    /// Nothing.
    Store,
    /// `out = product + residual`, `[m][n]`.
    AddResidual(&'a [f32]),
    /// `out += product`.
    AccumulateInto,
    /// `out = act(product) · (x · upᵀ + bias)`: a feed-forward block's gate and up. `up` has as
    /// many features in the same tiles, and takes the same activations.
    GatedActivation { activation: Activation, up: OutputChannels<'a>, bias: Option<&'a [f32]> },
}

/// `epilogue(x[m, k] · weight[n, k]ᵀ + bias[n])`, of `[m][n]`.
#[derive(Clone, Debug)]
pub(crate) struct Matmul<'a> {
    pub(crate) x: GemmInput<'a>,
    pub(crate) weight: OutputChannels<'a>,
    /// `[n]`.
    pub(crate) bias: Option<&'a [f32]>,
    pub(crate) epilogue: Epilogue<'a>,
}

impl Matmul<'_> {
    pub(super) fn check(&self, m: usize) {
        let (n, packed) = (self.weight.len(), self.weight.packed());
        let k = packed.cols();
        assert!(self.bias.is_none_or(|b| b.len() == n), "bias is not {n} values");
        match self.x {
            GemmInput::Q8(rows_q8) => {
                assert!(
                    rows_q8.groups == k / 32 && rows_q8.blocks.len() == m * rows_q8.groups,
                    "x"
                );
            }
            GemmInput::F32(x) => assert_eq!(x.len(), m * k, "x is not {m} rows of {k}"),
        }
        match &self.epilogue {
            Epilogue::Store | Epilogue::AccumulateInto => {}
            Epilogue::AddResidual(residual) => {
                assert_eq!(residual.len(), m * n, "the residual is not m × n")
            }
            Epilogue::GatedActivation { up, bias, .. } => {
                assert!(up.range() == self.weight.range() && up.packed().cols() == k, "up");
                let (a, b) = (packed.dtype(), up.packed().dtype());
                assert!(
                    QuantScheme::of_format(a) == QuantScheme::of_format(b),
                    "{a} and {b} take different activations"
                );
                assert!(bias.is_none_or(|b| b.len() == n), "up's bias is not {n} values");
            }
        }
    }
}
