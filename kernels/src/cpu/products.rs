//! `out[m, n] = x[m, k] · W[n, k]ᵀ` for every weight format: one or several products, with what
//! follows them, in one dispatch on the pool.

mod blocking;
mod dispatch;
mod forms;
mod task;
#[cfg(test)]
mod tests;

pub(crate) use blocking::panel_groups;
pub(crate) use dispatch::{Dispatch, RowTasks, Upcoming};
pub(crate) use forms::{FormSource, Forms};

use crate::cpu::Cpu;
use crate::cpu::packed::{Features, GROUP};
use crate::cpu::pool::{Blocks, Cut};
use crate::cpu::quantize::{ActKind, Acts};
use crate::cpu::tile::{ActBlock, TILE};
use crate::op::Activation;
use blocking::Reads;
use std::cell::RefCell;
use task::{Scratch, Task};

/// Most products of one dispatch.
pub(crate) const PRODUCTS_MAX: usize = 4;

/// Activations as a weight's format wants them.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Rows<'a> {
    /// Rounded, by the kind that [`ActKind::of`] gives for the weights' format.
    Quantised(Acts<'a>),
    /// As they are, `[m][k]`: quantised weights are widened for them.
    Floats(&'a [f32]),
}

/// What is done with a product before it is written.
#[derive(Clone, Debug)]
pub(crate) enum Then<'a> {
    /// Nothing.
    Write,
    /// `out = product + residual`, `[m][n]`.
    Add(&'a [f32]),
    /// `out += product`.
    AddTo,
    /// `out = act(product) · (x · upᵀ + bias)`: a feed-forward block's gate and up. `up` has as
    /// many features in the same tiles, and takes the same activations.
    Gate { activation: Activation, up: Features<'a>, bias: Option<&'a [f32]> },
}

/// `then(x[m, k] · weight[n, k]ᵀ + bias[n])`, of `[m][n]`.
#[derive(Clone, Debug)]
pub(crate) struct Product<'a> {
    pub(crate) x: Rows<'a>,
    pub(crate) weight: Features<'a>,
    /// `[n]`.
    pub(crate) bias: Option<&'a [f32]>,
    pub(crate) then: Then<'a>,
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
    static FORMS: RefCell<Forms> = RefCell::default();
}

/// `out[m, n] = x[m, k] · weight[n, k]ᵀ (+ bias[n])`.
///
/// Quantised weights multiply activations that are quantised as llama.cpp does for the
/// format, unless [`Cpu::activations`] says otherwise; float weights multiply them as they are.
///
/// # Panics
/// When `x` is not whole rows of k, or `out` or `bias` have not m·n or n values.
pub fn matmul(ctx: &Cpu, weight: &Features<'_>, x: &[f32], bias: Option<&[f32]>, out: &mut [f32]) {
    let k = weight.packed().cols();
    let m = x.len() / k;
    assert_eq!(x.len(), m * k, "x is not whole rows of {k}");
    let mut forms = FORMS.take();
    let dtype = weight.packed().dtype();
    forms.fill(ctx, [dtype].into_iter(), &FormSource { x, k, norm: None });
    let (x, weight) = (forms.rows(ctx, dtype, x), weight.clone());
    let product = Product { x, weight, bias, then: Then::Write };
    products(ctx, &Dispatch::of(m), [(product, out)]);
    FORMS.set(forms);
}

/// Computes up to [`PRODUCTS_MAX`] products of a dispatch's m rows, each to its `[m][n]` values. A value
/// does not depend on m, on the features that are computed with it, or on the other products.
///
/// # Panics
/// When there are more products, or the sizes of one do not fit each other.
pub(crate) fn products<'a>(
    ctx: &Cpu,
    dispatch: &Dispatch<'_>,
    products: impl IntoIterator<Item = (Product<'a>, &'a mut [f32])>,
) {
    let m = dispatch.rows;
    let mut list = [const { None }; PRODUCTS_MAX];
    for (index, (product, out)) in products.into_iter().enumerate() {
        assert!(index < PRODUCTS_MAX, "more than {PRODUCTS_MAX} products at once");
        product.check(m);
        assert_eq!(out.len(), m * product.weight.len(), "out of {m} rows");
        list[index] = Some((product, out));
    }
    if m == 0 {
        return;
    }
    let tasks = dispatch.tasks(ctx, 1, || {
        list.each_ref().map(|of| of.as_ref().map(|(product, _)| Reads::of(product)))
    });
    let mut cuts = [const { None }; PRODUCTS_MAX];
    for (cut, (blocks, of)) in cuts.iter_mut().zip(tasks.blocks.into_iter().zip(&mut list)) {
        let (Some(blocks), Some((_, out))) = (blocks, of) else { continue };
        *cut = Some(Cut { data: std::mem::take(out), blocks });
    }
    let weight = |index: usize| Some(&list[index].as_ref()?.0.weight);
    ctx.pool().cuts_mut(&mut cuts, tasks.at_once, |index, rows, block, after| {
        let Some((product, _)) = &list[index] else { return };
        let next = dispatch.read_after(ctx, (index, block.end()), after, weight);
        let task = Task { rows, until: after.until, next };
        SCRATCH.with_borrow_mut(|scratch| product.write(ctx, task, block, scratch));
    });
}

/// A product of a dispatch's m rows whose values are quantised as they come, to `[m][n/32]` blocks: the
/// same that quantising its rows would give.
///
/// # Panics
/// When the sizes do not fit each other, the weights' features are not whole tiles, or the values
/// are to be added to those of the blocks.
pub(crate) fn quantised_product(
    ctx: &Cpu,
    dispatch: &Dispatch<'_>,
    product: &Product<'_>,
    (kind, out): (ActKind, &mut [ActBlock]),
) {
    let m = dispatch.rows;
    product.check(m);
    assert!(!matches!(product.then, Then::AddTo), "blocks cannot be added to");
    let groups = product.weight.len() / GROUP;
    assert_eq!(out.len(), m * groups, "out of {m} rows");
    if out.is_empty() {
        return;
    }
    let unit = kind.columns() / TILE;
    let tasks = dispatch.tasks(ctx, unit, || [Some(Reads::of(product)), None, None, None]);
    let [Some(features), ..] = tasks.blocks else { return };
    let blocks =
        Blocks { row_len: groups, col_chunk: features.col_chunk / GROUP, lead: 0, ..features };
    let mut cuts = [Some(Cut { data: out, blocks })];
    let weight = |_| Some(&product.weight);
    ctx.pool().cuts_mut(&mut cuts, tasks.at_once, |index, rows, block, after| {
        let after = after.times(GROUP);
        let next = dispatch.read_after(ctx, (index, block.end() * GROUP), after, weight);
        let task = Task { rows, until: after.until, next };
        SCRATCH.with_borrow_mut(|scratch| {
            product.write_quantised(ctx, task, (kind, block), scratch);
        });
    });
}

impl Product<'_> {
    fn check(&self, m: usize) {
        let (n, packed) = (self.weight.len(), self.weight.packed());
        let k = packed.cols();
        assert!(self.bias.is_none_or(|b| b.len() == n), "bias is not {n} values");
        match self.x {
            Rows::Quantised(acts) => {
                assert!(acts.groups == k / 32 && acts.blocks.len() == m * acts.groups, "x");
            }
            Rows::Floats(x) => assert_eq!(x.len(), m * k, "x is not {m} rows of {k}"),
        }
        match &self.then {
            Then::Write | Then::AddTo => {}
            Then::Add(residual) => assert_eq!(residual.len(), m * n, "the residual is not m × n"),
            Then::Gate { up, bias, .. } => {
                assert!(up.range() == self.weight.range() && up.packed().cols() == k, "up");
                let (a, b) = (packed.dtype(), up.packed().dtype());
                assert!(
                    ActKind::of_format(a) == ActKind::of_format(b),
                    "{a} and {b} take different activations"
                );
                assert!(bias.is_none_or(|b| b.len() == n), "up's bias is not {n} values");
            }
        }
    }
}
