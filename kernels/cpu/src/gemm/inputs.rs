//! Activations, quantised as several weights need them.

use super::dispatch::Dispatch;
use super::op::{GemmInput, MATMULS_MAX, Matmul};
use super::run::quantized_matmul;
use crate::context::Cpu;
use crate::loops::quantize::{Q8Block, QuantScheme};
use crate::loops::quantize_row::InputScheme;
use crate::quantize::{InputSource, Q8Buffer};
use crate::rms_norm::rms_norm;
use lapwing_model::formats::DType;

/// The same activations for the formats of up to [`MATMULS_MAX`] weights; reuses its memory.
#[derive(Debug, Default)]
pub(crate) struct QuantizedInputs {
    /// Schemes of the first buffers.
    schemes: [Option<InputScheme>; MATMULS_MAX],
    quantised: [Q8Buffer; MATMULS_MAX],
    /// Normalised or gathered rows for float weights; empty if these take the rows as they are.
    normed: Vec<f32>,
}

/// Rows that are copied from others.
pub(crate) struct GatheredRows<'a, F> {
    /// The others, `[rows][k]`.
    pub(crate) x: &'a [f32],
    pub(crate) k: usize,
    pub(crate) count: usize,
    /// Which of them each row is.
    pub(crate) from: F,
}

impl QuantizedInputs {
    /// Quantises the rows for weights of these formats; a row is normalised and quantised in one
    /// pass.
    ///
    /// # Panics
    /// With more than [`MATMULS_MAX`] schemes.
    pub(crate) fn fill(
        &mut self,
        ctx: &Cpu,
        formats: impl Iterator<Item = DType> + Clone,
        source: &InputSource<'_>,
    ) {
        self.schemes = [None; MATMULS_MAX];
        let mut used = 0;
        let scheme_of = |format| ctx.quant_scheme(format);
        for scheme in formats.clone().filter_map(scheme_of) {
            if !self.schemes[..used].contains(&Some(scheme)) {
                self.schemes[used] = Some(scheme);
                self.quantised[used].fill(ctx, scheme, source);
                used += 1;
            }
        }
        self.normed.clear();
        if let Some(norm) = &source.norm
            && formats.map(scheme_of).any(|scheme| scheme.is_none())
        {
            self.normed.resize(source.x.len(), 0.0);
            rms_norm(ctx, source.x, norm.weight, norm.eps, &mut self.normed);
        }
    }

    /// Fills it with the output of a matmul, quantised on the fly; f32 values are not stored.
    ///
    /// # Panics
    /// As [`quantized_matmul`].
    pub(crate) fn fill_with(
        &mut self,
        ctx: &Cpu,
        dispatch: &Dispatch<'_>,
        product: &Matmul<'_>,
        scheme: QuantScheme,
    ) {
        let out = self.room(scheme, dispatch.rows, product.weight.len());
        quantized_matmul(ctx, dispatch, product, scheme, out);
    }

    /// Room for rows of `k` values in one scheme; the contents are arbitrary.
    pub(crate) fn room(&mut self, scheme: QuantScheme, rows: usize, k: usize) -> &mut [Q8Block] {
        self.schemes = [None; MATMULS_MAX];
        self.schemes[0] = Some(scheme.into());
        self.normed.clear();
        self.quantised[0].room(rows, k)
    }

    /// Fills it with rows of `all`, which was filled for these formats from rows `x` of `k` values: row i
    /// is row `from(i)`.
    pub(crate) fn gather(
        &mut self,
        ctx: &Cpu,
        all: &QuantizedInputs,
        formats: impl Iterator<Item = DType>,
        rows: &GatheredRows<'_, impl Fn(usize) -> usize + Sync>,
    ) {
        let GatheredRows { x, k, count, from } = rows;
        self.schemes = all.schemes;
        let buffers = self.quantised.iter_mut().zip(&all.quantised).zip(self.schemes);
        for ((to, from_all), _) in buffers.take_while(|(_, scheme)| scheme.is_some()) {
            to.gather(ctx, from_all, *count, from);
        }
        self.normed.clear();
        if formats.into_iter().any(|format| ctx.quant_scheme(format).is_none()) {
            let x = if all.normed.is_empty() { x } else { &all.normed[..] };
            self.normed.resize(count * k, 0.0);
            let per_task = ctx.rows_per_task(*count, *k);
            ctx.pool().chunks_mut(&mut self.normed, per_task * k, |i, to| {
                for (row, to) in (i * per_task..).zip(to.chunks_exact_mut(*k)) {
                    to.copy_from_slice(&x[from(row) * k..][..*k]);
                }
            });
        }
    }

    /// The input for weights of this format; `ctx` and `x` are those passed to
    /// [`fill`](QuantizedInputs::fill).
    ///
    /// # Panics
    /// When it was not filled for the format.
    pub(crate) fn rows<'a>(&'a self, ctx: &Cpu, format: DType, x: &'a [f32]) -> GemmInput<'a> {
        match ctx.quant_scheme(format) {
            None if self.normed.is_empty() => GemmInput::F32(x),
            None => GemmInput::F32(&self.normed),
            Some(scheme) => {
                let Some(at) = self.schemes.iter().position(|other| *other == Some(scheme)) else {
                    unreachable!("no input was made for {format}");
                };
                GemmInput::Q8(self.quantised[at].rows())
            }
        }
    }
}
