//! Activations in the inputs that some weights take.

use super::dispatch::Dispatch;
use super::op::{GemmInput, MATMULS_MAX, Matmul};
use super::run::quantized_matmul;
use crate::cpu::context::Cpu;
use crate::cpu::loops::quantize::QuantScheme;
use crate::cpu::quantize::{InputSource, Q8Buffer};
use crate::cpu::rms_norm::rms_norm;
use crate::quant::DType;

/// The same activations for the formats of up to [`MATMULS_MAX`] weights; the memory is kept
/// between calls.
#[derive(Debug, Default)]
pub(crate) struct QuantizedInputs {
    /// Of the first buffers.
    kinds: [Option<QuantScheme>; MATMULS_MAX],
    quantised: [Q8Buffer; MATMULS_MAX],
    /// The norms for float weights; empty where these take the rows as they are.
    normed: Vec<f32>,
}

impl QuantizedInputs {
    /// Makes the inputs that weights of these formats take, normalising a row and quantising it in
    /// one pass.
    ///
    /// # Panics
    /// With more than [`MATMULS_MAX`] formats.
    pub(crate) fn fill(
        &mut self,
        ctx: &Cpu,
        formats: impl Iterator<Item = DType> + Clone,
        source: &InputSource<'_>,
    ) {
        self.kinds = [None; MATMULS_MAX];
        let mut used = 0;
        let kind_of = |format| ctx.quant_scheme(format);
        for kind in formats.clone().filter_map(kind_of) {
            if !self.kinds[..used].contains(&Some(kind)) {
                self.kinds[used] = Some(kind);
                self.quantised[used].fill(ctx, kind, source);
                used += 1;
            }
        }
        self.normed.clear();
        if let Some(norm) = &source.norm
            && formats.map(kind_of).any(|kind| kind.is_none())
        {
            self.normed.resize(source.x.len(), 0.0);
            rms_norm(ctx, source.x, norm.weight, norm.eps, &mut self.normed);
        }
    }

    /// Has the values of a product of a dispatch, rounded as they come; never as floats.
    ///
    /// # Panics
    /// As [`quantized_matmul`].
    pub(crate) fn fill_with(
        &mut self,
        ctx: &Cpu,
        dispatch: &Dispatch<'_>,
        product: &Matmul<'_>,
        kind: QuantScheme,
    ) {
        self.kinds = [None; MATMULS_MAX];
        self.kinds[0] = Some(kind);
        self.normed.clear();
        let out = self.quantised[0].room(dispatch.rows, product.weight.len());
        quantized_matmul(ctx, dispatch, product, (kind, out));
    }

    /// What a weight of that format takes; `ctx` and `x` are those that it was filled with.
    ///
    /// # Panics
    /// When the format was not among those that it was filled for.
    pub(crate) fn rows<'a>(&'a self, ctx: &Cpu, format: DType, x: &'a [f32]) -> GemmInput<'a> {
        match ctx.quant_scheme(format) {
            None if self.normed.is_empty() => GemmInput::F32(x),
            None => GemmInput::F32(&self.normed),
            Some(kind) => {
                let Some(at) = self.kinds.iter().position(|other| *other == Some(kind)) else {
                    unreachable!("no form was made for {format}");
                };
                GemmInput::Q8(self.quantised[at].rows())
            }
        }
    }
}
