//! `out[m, n] = x[m, k] · W[n, k]ᵀ` for every weight format: one or several products, with what
//! follows them, in one dispatch on the pool.

mod forms;
#[cfg(test)]
mod tests;

pub(crate) use forms::{FormSource, Forms};

use crate::cpu::Cpu;
use crate::cpu::isa::Kernels;
use crate::cpu::packed::{Features, Packed};
use crate::cpu::pool::{ColumnBlock, Cut};
use crate::cpu::quantize::{ActKind, Acts};
use crate::cpu::tile::{FloatJob, FloatTiles, KernelScratch, QuantJob, TILE};
use crate::op::Activation;
use crate::quant::DType;
use std::cell::RefCell;
use std::ops::Range;

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
    /// `out = act(product) · (x · upᵀ + bias)`: a feed-forward block's gate and up. `up` has as
    /// many features in the same tiles, and takes the same activations.
    Gate { activation: Activation, up: Features<'a>, bias: Option<&'a [f32]> },
}

/// `out[m, n] = then(x[m, k] · weight[n, k]ᵀ + bias[n])`.
#[derive(Debug)]
pub(crate) struct Product<'a> {
    pub(crate) x: Rows<'a>,
    pub(crate) weight: Features<'a>,
    /// `[n]`.
    pub(crate) bias: Option<&'a [f32]>,
    pub(crate) then: Then<'a>,
    /// `[m][n]`.
    pub(crate) out: &'a mut [f32],
}

/// What a thread keeps between calls.
#[derive(Default)]
struct Scratch {
    kernel: KernelScratch,
    out: Vec<f32>,
    up: Vec<f32>,
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
    products(ctx, m, [Product { x, weight, bias, then: Then::Write, out }]);
    FORMS.set(forms);
}

/// Computes up to [`PRODUCTS_MAX`] products of m rows in one dispatch. The value of an output
/// does not depend on m, on the features that are computed with it, or on the other products.
///
/// # Panics
/// When there are more products, or the sizes of one do not fit each other.
pub(crate) fn products<'a>(ctx: &Cpu, m: usize, products: impl IntoIterator<Item = Product<'a>>) {
    let mut list = [const { None }; PRODUCTS_MAX];
    for (index, product) in products.into_iter().enumerate() {
        assert!(index < PRODUCTS_MAX, "more than {PRODUCTS_MAX} products at once");
        product.check(m);
        list[index] = Some(product);
    }
    if m == 0 {
        return;
    }
    let tiles: usize = list.iter().flatten().map(|p| p.weight.tiles().len()).sum();
    let mut cuts = [const { None }; PRODUCTS_MAX];
    for (cut, product) in cuts.iter_mut().zip(list.iter_mut().flatten()) {
        let out = std::mem::take(&mut product.out);
        *cut = (!out.is_empty()).then(|| product.cut(ctx, (m, tiles), out));
    }
    ctx.pool().cuts_mut(&mut cuts, |index, rows, block| {
        let Some(product) = &list[index] else { return };
        let mut scratch = SCRATCH.take();
        product.compute(ctx, rows, block, &mut scratch);
        SCRATCH.set(scratch);
    });
}

impl Product<'_> {
    fn check(&self, m: usize) {
        let (n, packed) = (self.weight.len(), self.weight.packed());
        let k = packed.cols();
        assert_eq!(self.out.len(), m * n, "out is not {m} × {n}");
        assert!(self.bias.is_none_or(|b| b.len() == n), "bias is not {n} values");
        match self.x {
            Rows::Quantised(acts) => {
                assert!(acts.groups == k / 32 && acts.blocks.len() == m * acts.groups, "x");
            }
            Rows::Floats(x) => assert_eq!(x.len(), m * k, "x is not {m} rows of {k}"),
        }
        match &self.then {
            Then::Write => {}
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

    /// How `out` is cut into tasks: few, so that claims cost little, each a run of whole tiles;
    /// many enough that no thread waits long for the last. With many rows also by rows, so that
    /// a task's activations stay in the second-level cache.
    fn cut<'a>(&self, ctx: &Cpu, (m, tiles): (usize, usize), out: &'a mut [f32]) -> Cut<'a, f32> {
        /// Fewest weights of a task (products of weights and rows, where they are more).
        const TASK_WEIGHTS: usize = 1 << 17;
        const TASK_PRODUCTS: usize = 1 << 22;
        /// Most rows of a task, and what its rows are a multiple of.
        const TASK_ROWS: usize = 192;
        const ROWS: usize = 12;
        let of_tile = self.weight.packed().cols() * TILE;
        let worth = TASK_WEIGHTS.div_ceil(of_tile).min(TASK_PRODUCTS.div_ceil(of_tile * m));
        let fair = tiles.div_ceil(ctx.pool().threads() * 4);
        let chunk = worth.min(fair).max(1).next_multiple_of(if m > 1 { 2 } else { 1 });
        let row_chunk = m.div_ceil(m.div_ceil(TASK_ROWS)).next_multiple_of(ROWS);
        Cut {
            data: out,
            row_len: self.weight.len(),
            row_chunk,
            col_chunk: chunk * TILE,
            lead: self.weight.range().start % TILE,
        }
    }

    fn compute(
        &self,
        ctx: &Cpu,
        rows: Range<usize>,
        mut block: ColumnBlock<'_, f32>,
        scratch: &mut Scratch,
    ) {
        let Scratch { kernel, out, up } = scratch;
        let start = self.weight.range().start;
        let features = start + block.start()..start + block.start() + block.width();
        let tiles = features.start / TILE..features.end.div_ceil(TILE);
        let stride = tiles.len() * TILE;
        let job = Tiles { ctx, x: self.x, rows: rows.clone(), tiles };
        job.multiply(self.weight.packed(), kernel, out);
        if let Then::Gate { up: weight, .. } = &self.then {
            job.multiply(weight.packed(), kernel, up);
        }
        let at = block.start()..block.start() + block.width();
        let lead = features.start % TILE;
        for row in 0..rows.len() {
            let from = row * stride + lead..row * stride + lead + at.len();
            let line = &mut out[from.clone()];
            add_to(line, self.bias.map(|b| &b[at.clone()]));
            let to = block.row_mut(row);
            match &self.then {
                Then::Write => to.copy_from_slice(line),
                Then::Add(residual) => {
                    let row = &residual[(rows.start + row) * self.weight.len()..];
                    (ctx.kernels().add)(line, &row[at.clone()], to);
                }
                Then::Gate { activation, bias, .. } => {
                    let up = &mut up[from];
                    add_to(up, bias.map(|b| &b[at.clone()]));
                    (ctx.kernels().gated)(*activation, line, up, to);
                }
            }
        }
    }
}

fn add_to(to: &mut [f32], bias: Option<&[f32]>) {
    for (to, bias) in to.iter_mut().zip(bias.into_iter().flatten()) {
        *to += bias;
    }
}

/// Tiles of a quantised matrix in f32.
fn widened<'a>(
    kernels: &Kernels,
    weight: &Packed,
    tiles: Range<usize>,
    to: &'a mut Vec<u8>,
) -> FloatTiles<'a> {
    let (cols, count) = (weight.cols(), tiles.len());
    let stride = cols * TILE * DType::F32.block_bytes();
    if to.len() < count * stride {
        to.resize(count * stride, 0);
    }
    for (tile, to) in tiles.zip(to.chunks_exact_mut(stride)) {
        (kernels.widen_tile)(&weight.tile(tile), to);
    }
    FloatTiles { dtype: DType::F32, cols, count, stride, bytes: to }
}

/// Some rows times some tiles.
struct Tiles<'a> {
    ctx: &'a Cpu,
    x: Rows<'a>,
    rows: Range<usize>,
    tiles: Range<usize>,
}

impl Tiles<'_> {
    /// `[rows][16 per tile]` at the beginning of `out`.
    fn multiply(&self, weight: &Packed, scratch: &mut KernelScratch, out: &mut Vec<f32>) {
        let (rows, tiles) = (self.rows.len(), self.tiles.clone());
        let len = rows * tiles.len() * TILE;
        if out.len() < len {
            out.resize(len, 0.0);
        }
        let out = &mut out[..len];
        let kernels = self.ctx.kernels();
        match self.x {
            Rows::Quantised(Acts { blocks, groups }) => {
                let x = &blocks[self.rows.start * groups..self.rows.end * groups];
                (kernels.quant_tiles)(&QuantJob { weight, tiles, x, rows }, out, scratch);
            }
            Rows::Floats(x) => {
                let k = weight.cols();
                let x = &x[self.rows.start * k..self.rows.end * k];
                let tiles = match ActKind::of_format(weight.dtype()) {
                    None => weight.float_tiles(tiles),
                    Some(_) => widened(kernels, weight, tiles, &mut scratch.widened),
                };
                (kernels.float_tiles)(&FloatJob { tiles, x, rows }, out);
            }
        }
    }
}
