//! Feed-forward blocks of chosen experts: the rows of each expert are multiplied together.

mod inputs;
mod mix;
mod run;

pub use mix::{Mixture, mix};

use crate::context::Cpu;
use crate::gemm::{Epilogue, FirstRead, GemmInput, Matmul, Product};
use crate::loops::gated::Gating;
use crate::packed::{OutputChannels, PackedMatrix};
use lapwing_model::device::{ExpertLoad, RowsOfExpert};
use lapwing_model::op::{Curve, ExpertForm};
use run::Scratch;
use std::cell::RefCell;
use std::ops::Range;

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

/// One matrix of each expert, below each other in a packed matrix.
#[derive(Clone, Copy, Debug)]
pub struct ExpertMatrices<'a> {
    /// All of them.
    pub weight: &'a PackedMatrix,
    /// Rows from an expert to the next.
    pub stride: usize,
    /// The first of an expert's rows.
    pub first: usize,
    /// Output channels of an expert.
    pub rows: usize,
    /// `[experts, stride]`: a bias for each row of the matrix.
    pub bias: Option<&'a [f32]>,
    /// A factor for each expert's product, before the bias.
    pub scale: Option<&'a [f32]>,
}

/// Experts of a layer.
#[derive(Clone, Copy, Debug)]
pub struct Experts<'a> {
    /// Number of experts.
    pub count: usize,
    /// Experts of each row.
    pub used: usize,
    /// The gates, if the form has any.
    pub gate: Option<ExpertMatrices<'a>>,
    /// The matrices whose output is gated, or goes through a curve.
    pub up: ExpertMatrices<'a>,
    /// What becomes of both.
    pub form: ExpertForm,
    /// The matrices that are multiplied with that.
    pub down: ExpertMatrices<'a>,
    /// Whether the weights of the route multiply what an expert reads.
    pub weighs_input: bool,
}

/// What each expert of a `route` makes of the row, `[rows][used · width]`, in the order of the route: `[rows][2 · used]` as
/// [`route`](crate::route) writes it. The values of a row do not depend on the other rows. Returns how the rows are divided.
///
/// # Panics
/// When sizes do not match, or a form with gates has none.
pub fn experts(
    ctx: &Cpu,
    experts: &Experts<'_>,
    x: &[f32],
    route: &[f32],
    out: &mut [f32],
) -> ExpertLoad {
    let job = ExpertsJob { x, route, own: 0..experts.count, first_read: &|_| None };
    run_experts(ctx, experts, job, out, None)
}

/// As [`experts`], with what each thread reads afterwards, for some experts: the slots of others are left as they are. `each` gets
/// those that have rows, and has room for all after the first call.
///
/// # Panics
/// As [`experts`].
pub(crate) fn run_experts(
    ctx: &Cpu,
    experts: &Experts<'_>,
    job: ExpertsJob<'_, '_>,
    out: &mut [f32],
    mut each: Option<&mut Vec<RowsOfExpert>>,
) -> ExpertLoad {
    if let Some(each) = &mut each {
        each.clear();
    }
    let (width, made) = (experts.up.weight.cols(), experts.down.rows);
    let rows = job.x.len().checked_div(width).unwrap_or(0);
    assert_eq!(job.x.len(), rows * width, "x is not whole rows of {width}");
    assert_eq!(job.route.len(), rows * 2 * experts.used, "the route of {rows} rows");
    assert_eq!(out.len(), rows * experts.used * made, "out of {rows} rows");
    if out.is_empty() {
        return ExpertLoad { experts: job.own.len(), ..ExpertLoad::default() };
    }
    let mut scratch = SCRATCH.take();
    scratch.run(ctx, experts, &job, out);
    let load = scratch.load(job.own.len(), each);
    SCRATCH.set(scratch);
    load
}

/// Rows and their experts.
pub(crate) struct ExpertsJob<'a, 'n> {
    /// The rows.
    pub(crate) x: &'a [f32],
    /// Their route.
    pub(crate) route: &'a [f32],
    /// The experts that are computed.
    pub(crate) own: Range<usize>,
    /// What each thread reads after the experts.
    pub(crate) first_read: FirstRead<'a, 'n>,
}

impl ExpertsJob<'_, '_> {
    /// Number of rows.
    fn rows(&self, experts: &Experts<'_>) -> usize {
        self.route.len() / (2 * experts.used)
    }
}

impl<'a> ExpertMatrices<'a> {
    /// The output channels of an expert.
    fn channels(&self, expert: usize) -> OutputChannels<'a> {
        let start = expert * self.stride + self.first;
        let factor = self.scale.map(|scale| scale[expert]);
        self.weight.channels(start..start + self.rows).times(factor)
    }

    fn product(&self, expert: usize, x: GemmInput<'a>) -> Product<'a> {
        let weight = self.channels(expert);
        Product { x, bias: self.bias.map(|bias| &bias[weight.range()]), weight }
    }

    fn matmul(&self, expert: usize, x: GemmInput<'a>, epilogue: Epilogue<'a>) -> Matmul<'a> {
        let Product { x, weight, bias } = self.product(expert, x);
        Matmul { x, weight, bias, epilogue }
    }
}

impl<'a> Experts<'a> {
    /// The matrix of which the output is gated or goes through a curve, and how.
    fn first(&self) -> (ExpertMatrices<'a>, Middle<'a>) {
        let gating = match self.form {
            ExpertForm::Plain(curve) => return (self.up, Middle::Curve(curve)),
            ExpertForm::Gated(activation) => Gating::Activation(activation),
            ExpertForm::ReluGated => Gating::Relu,
            ExpertForm::ClampedGated { alpha, gate_limit, limit, offset } => {
                Gating::Clamped { alpha, gate_limit, limit, offset }
            }
        };
        match self.gate {
            Some(gate) => (gate, Middle::Gated { gating, up: self.up }),
            None => panic!("experts with gates have a matrix of them"),
        }
    }
}

/// What becomes of an expert's first product.
#[derive(Clone, Copy, Debug)]
enum Middle<'a> {
    Curve(Curve),
    Gated { gating: Gating, up: ExpertMatrices<'a> },
}

impl<'a> Middle<'a> {
    /// The epilogue of an expert's first product; `input` is what weights of a matrix read.
    fn epilogue(
        &self,
        expert: usize,
        input: impl Fn(&PackedMatrix) -> GemmInput<'a>,
    ) -> Epilogue<'a> {
        match self {
            Middle::Curve(curve) => Epilogue::Curve(*curve),
            Middle::Gated { gating, up } => {
                Epilogue::Gated { gating: *gating, up: up.product(expert, input(up.weight)) }
            }
        }
    }
}
