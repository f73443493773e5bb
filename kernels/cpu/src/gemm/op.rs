//! A matmul, its input and its epilogue.

use crate::channel_sums::sum_channels;
use crate::context::Cpu;
use crate::loops::quantize::QuantScheme;
use crate::packed::OutputChannels;
use crate::quantize::Q8Rows;
use lapwing_model::op::Activation;

/// Most matmuls of one dispatch.
pub(crate) const MATMULS_MAX: usize = 4;

/// Activations of a matmul.
#[derive(Clone, Copy, Debug)]
pub enum GemmInput<'a> {
    /// Quantised by [`Cpu::quant_scheme`](crate::Cpu) of the weights' format.
    Q8(Q8Rows<'a>),
    /// f32, `[m][k]`; quantised weights are dequantised for them.
    F32(&'a [f32]),
}

/// Epilogue: the operation on a matmul's output before it is stored.
#[derive(Clone, Debug)]
pub enum Epilogue<'a> {
    /// `out = product`.
    Store,
    /// `out = product + residual`, `[m][n]`.
    AddResidual(&'a [f32]),
    /// `out += product`.
    AccumulateInto,
    /// `out = act(product) · (x · upᵀ + bias)`: gate and up of a feed-forward block. `up` has as
    /// many channels in the same tiles and takes the same activations.
    GatedActivation {
        /// act.
        activation: Activation,
        /// up.
        up: OutputChannels<'a>,
        /// bias, `[n]`.
        bias: Option<&'a [f32]>,
    },
}

/// `epilogue(x[m, k] · weight[n, k]ᵀ + bias[n])`, `[m][n]`.
#[derive(Clone, Debug)]
pub struct Matmul<'a> {
    /// Activations, `[m][k]`.
    pub x: GemmInput<'a>,
    /// Output channels of the weight, `[n][k]`.
    pub weight: OutputChannels<'a>,
    /// `[n]`.
    pub bias: Option<&'a [f32]>,
    /// What becomes of the product.
    pub epilogue: Epilogue<'a>,
}

impl Matmul<'_> {
    /// Sums the weights of each channel if the activations need them, unless that was done before.
    pub(super) fn sum_channels(&self, ctx: &Cpu) {
        if !matches!(self.x, GemmInput::Q8(rows) if rows.has_shifts()) {
            return;
        }
        sum_channels(ctx, self.weight.packed());
        if let Epilogue::GatedActivation { up, .. } = &self.epilogue {
            sum_channels(ctx, up.packed());
        }
    }

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
