//! `out[m, n] = x[m, k] · W[n, k]ᵀ` for every weight format: one or several products, with what
//! follows them, in one dispatch on the pool.

mod blocking;
mod dispatch;
mod inputs;
mod task;
#[cfg(test)]
mod tests;

pub(crate) use blocking::panel_groups;
pub(crate) use dispatch::{Dispatch, GemvPlan, NextDispatch};
pub(crate) use inputs::{InputSource, QuantizedInputs};

use crate::cpu::Cpu;
use crate::cpu::packed::{GROUP, OutputChannels};
use crate::cpu::pool::{BlockGrid, PartitionedMatrix};
use crate::cpu::quantize::{Q8Rows, QuantScheme};
use crate::cpu::tile::{Q8Block, TILE};
use crate::op::Activation;
use blocking::BlockingInput;
use std::cell::RefCell;
use task::{Scratch, Task};

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

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
    static INPUTS: RefCell<QuantizedInputs> = RefCell::default();
}

/// `out[m, n] = x[m, k] · weight[n, k]ᵀ (+ bias[n])`.
///
/// Quantised weights multiply activations that are quantised as llama.cpp does for the
/// format, unless [`Cpu::activations`] says otherwise; float weights multiply them as they are.
///
/// # Panics
/// When `x` is not whole rows of k, or `out` or `bias` have not m·n or n values.
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

/// Computes up to [`MATMULS_MAX`] products of a dispatch's m rows, each to its `[m][n]` values. A value
/// does not depend on m, on the features that are computed with it, or on the other products.
///
/// # Panics
/// When there are more products, or the sizes of one do not fit each other.
pub(crate) fn matmuls<'a>(
    ctx: &Cpu,
    dispatch: &Dispatch<'_>,
    products: impl IntoIterator<Item = (Matmul<'a>, &'a mut [f32])>,
) {
    let m = dispatch.rows;
    let mut list = [const { None }; MATMULS_MAX];
    for (index, (product, out)) in products.into_iter().enumerate() {
        assert!(index < MATMULS_MAX, "more than {MATMULS_MAX} products at once");
        product.check(m);
        assert_eq!(out.len(), m * product.weight.len(), "out of {m} rows");
        list[index] = Some((product, out));
    }
    if m == 0 {
        return;
    }
    let tasks = dispatch.tasks(ctx, 1, || {
        list.each_ref().map(|of| of.as_ref().map(|(product, _)| BlockingInput::of(product)))
    });
    let mut cuts = [const { None }; MATMULS_MAX];
    for (cut, (blocks, of)) in cuts.iter_mut().zip(tasks.blocks.into_iter().zip(&mut list)) {
        let (Some(blocks), Some((_, out))) = (blocks, of) else { continue };
        *cut = Some(PartitionedMatrix { data: std::mem::take(out), blocks });
    }
    let weight = |index: usize| Some(&list[index].as_ref()?.0.weight);
    ctx.pool().partitioned_mut(&mut cuts, tasks.at_once, |index, rows, block, after| {
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
pub(crate) fn quantized_matmul(
    ctx: &Cpu,
    dispatch: &Dispatch<'_>,
    product: &Matmul<'_>,
    (kind, out): (QuantScheme, &mut [Q8Block]),
) {
    let m = dispatch.rows;
    product.check(m);
    assert!(!matches!(product.epilogue, Epilogue::AccumulateInto), "blocks cannot be added to");
    let groups = product.weight.len() / GROUP;
    assert_eq!(out.len(), m * groups, "out of {m} rows");
    if out.is_empty() {
        return;
    }
    let unit = kind.columns() / TILE;
    let tasks = dispatch.tasks(ctx, unit, || [Some(BlockingInput::of(product)), None, None, None]);
    let [Some(features), ..] = tasks.blocks else { return };
    let blocks =
        BlockGrid { row_len: groups, col_chunk: features.col_chunk / GROUP, lead: 0, ..features };
    let mut cuts = [Some(PartitionedMatrix { data: out, blocks })];
    let weight = |_| Some(&product.weight);
    ctx.pool().partitioned_mut(&mut cuts, tasks.at_once, |index, rows, block, after| {
        let after = after.times(GROUP);
        let next = dispatch.read_after(ctx, (index, block.end() * GROUP), after, weight);
        let task = Task { rows, until: after.until, next };
        SCRATCH.with_borrow_mut(|scratch| {
            product.write_quantized(ctx, task, (kind, block), scratch);
        });
    });
}

impl Matmul<'_> {
    fn check(&self, m: usize) {
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
