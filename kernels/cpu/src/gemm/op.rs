//! A matmul, its input and its epilogue.

use crate::channel_sums::sum_channels;
use crate::context::Cpu;
use crate::loops::gated::Gating;
use crate::packed::OutputChannels;
use crate::packed::layout::GROUP;
use crate::quantize::Q8Rows;
use lapwing_model::op::Curve;

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
    /// `out = gating(product, up)`: gate and up of a feed-forward block. `up` has as many channels.
    Gated {
        /// gating.
        gating: Gating,
        /// up.
        up: Product<'a>,
    },
    /// `out = curve(product)`.
    Curve(Curve),
}

/// `x[m, k] · weight[n, k]ᵀ + bias[n]`.
#[derive(Clone, Debug)]
pub struct Product<'a> {
    /// Activations, `[m][k]`.
    pub x: GemmInput<'a>,
    /// Output channels of the weight, `[n][k]`.
    pub weight: OutputChannels<'a>,
    /// `[n]`.
    pub bias: Option<&'a [f32]>,
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

impl Product<'_> {
    /// Sums the weights of each channel if the activations need them, unless that was done before.
    fn sum_channels(&self, ctx: &Cpu) {
        if matches!(self.x, GemmInput::Q8(rows) if rows.has_shifts()) {
            sum_channels(ctx, self.weight.packed());
        }
    }

    fn check(&self, m: usize) {
        let (n, k) = (self.weight.len(), self.weight.packed().cols());
        assert!(self.bias.is_none_or(|b| b.len() == n), "bias is not {n} values");
        match self.x {
            GemmInput::Q8(rows_q8) => {
                let groups = rows_q8.groups;
                assert!(groups == k / GROUP && rows_q8.blocks.len() == m * groups, "x");
            }
            GemmInput::F32(x) => assert_eq!(x.len(), m * k, "x is not {m} rows of {k}"),
        }
    }
}

impl<'a> Matmul<'a> {
    /// The product, without the epilogue.
    pub(super) fn product(&self) -> Product<'a> {
        Product { x: self.x, weight: self.weight.clone(), bias: self.bias }
    }

    /// Whether it has a gated epilogue, which reads `up` too.
    pub(super) fn is_gated(&self) -> bool {
        matches!(self.epilogue, Epilogue::Gated { .. })
    }

    /// Sums the weights of each channel if the activations need them, unless that was done before.
    pub(super) fn sum_channels(&self, ctx: &Cpu) {
        self.product().sum_channels(ctx);
        if let Epilogue::Gated { up, .. } = &self.epilogue {
            up.sum_channels(ctx);
        }
    }

    pub(super) fn check(&self, m: usize) {
        let n = self.weight.len();
        self.product().check(m);
        match &self.epilogue {
            Epilogue::Store | Epilogue::AccumulateInto | Epilogue::Curve(_) => {}
            Epilogue::AddResidual(residual) => {
                assert_eq!(residual.len(), m * n, "the residual is not m × n")
            }
            Epilogue::Gated { up, .. } => {
                assert_eq!(up.weight.len(), n, "channels of up");
                up.check(m);
            }
        }
    }
}
