//! Activations in the forms that some weights take.

use super::{Dispatch, PRODUCTS_MAX, Product, Rows, quantised_product};
use crate::cpu::Cpu;
use crate::cpu::norm::{RmsWeight, rms_norm};
use crate::cpu::quantize::{ActBuffer, ActKind};
use crate::quant::DType;

/// Rows of `k` values, or their norms.
#[derive(Debug)]
pub(crate) struct FormSource<'a> {
    /// `[m][k]`.
    pub(crate) x: &'a [f32],
    pub(crate) k: usize,
    pub(crate) norm: Option<RmsWeight<'a>>,
}

/// The same activations for the formats of up to [`PRODUCTS_MAX`] weights; the memory is kept
/// between calls.
#[derive(Debug, Default)]
pub(crate) struct Forms {
    /// Of the first buffers.
    kinds: [Option<ActKind>; PRODUCTS_MAX],
    quantised: [ActBuffer; PRODUCTS_MAX],
    /// The norms for float weights; empty where these take the rows as they are.
    normed: Vec<f32>,
}

impl Forms {
    /// Makes the forms that weights of these formats take, normalising a row and quantising it in
    /// one pass.
    ///
    /// # Panics
    /// With more than [`PRODUCTS_MAX`] formats.
    pub(crate) fn fill(
        &mut self,
        ctx: &Cpu,
        formats: impl Iterator<Item = DType> + Clone,
        source: &FormSource<'_>,
    ) {
        self.kinds = [None; PRODUCTS_MAX];
        let mut used = 0;
        let kind_of = |format| ActKind::of(ctx.activations(), format);
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
    /// As [`quantised_product`].
    pub(crate) fn fill_with(
        &mut self,
        ctx: &Cpu,
        dispatch: &Dispatch<'_>,
        product: &Product<'_>,
        kind: ActKind,
    ) {
        self.kinds = [None; PRODUCTS_MAX];
        self.kinds[0] = Some(kind);
        self.normed.clear();
        let out = self.quantised[0].room(dispatch.rows, product.weight.len());
        quantised_product(ctx, dispatch, product, (kind, out));
    }

    /// What a weight of that format takes; `ctx` and `x` are those that it was filled with.
    ///
    /// # Panics
    /// When the format was not among those that it was filled for.
    pub(crate) fn rows<'a>(&'a self, ctx: &Cpu, format: DType, x: &'a [f32]) -> Rows<'a> {
        match ActKind::of(ctx.activations(), format) {
            None if self.normed.is_empty() => Rows::Floats(x),
            None => Rows::Floats(&self.normed),
            Some(kind) => {
                let Some(at) = self.kinds.iter().position(|other| *other == Some(kind)) else {
                    unreachable!("no form was made for {format}");
                };
                Rows::Quantised(self.quantised[at].acts())
            }
        }
    }
}
