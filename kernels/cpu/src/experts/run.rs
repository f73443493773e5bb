//! Runs experts on the pool: one dispatch for the first products of all, one for the last ones.

use super::inputs::InputBuffers;
use super::{ExpertMatrices, Experts, ExpertsJob, Middle};
use crate::context::Cpu;
use crate::gemm::{BlockingInput, Epilogue, GroupDispatch, GroupPlan, QuantizedInputs};
use crate::loops::quantize::QuantScheme;
use crate::packed::PackedMatrix;
use crate::packed::layout::TILE;
use crate::pool::{GroupedRows, RowGroup};
use crate::quantize::InputSource;
use lapwing_model::device::{ExpertLoad, RowsOfExpert};

/// Buffers, reused between calls.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    /// The expert of each row and slot.
    expert_of: Vec<u32>,
    /// Rows and slots, grouped by expert.
    grouped: GroupedRows,
    inputs: InputBuffers,
    middle: MiddleBuffers,
    first_plan: GroupPlan,
    last_plan: GroupPlan,
}

/// What is made of the first products.
#[derive(Debug, Default)]
struct MiddleBuffers {
    values: Vec<f32>,
    /// As weights of the last products need it.
    inputs: QuantizedInputs,
}

impl Scratch {
    /// Computes all experts of a job, whose sizes are checked.
    pub(super) fn run(
        &mut self,
        ctx: &Cpu,
        experts: &Experts<'_>,
        job: &ExpertsJob<'_, '_>,
        out: &mut [f32],
    ) {
        self.group(experts, job);
        if self.grouped.order().is_empty() {
            return;
        }
        let Scratch { grouped, inputs, middle, first_plan, last_plan, .. } = self;
        let (groups, down, (first, then)) = (grouped.groups(), &experts.down, experts.first());
        let is_gated = matches!(then, Middle::Gated { .. });
        let output = output_scheme(ctx, experts, job.rows(experts));
        first_plan.fill(ctx, output, groups, reads(first, is_gated));
        last_plan.fill(ctx, None, groups, reads(*down, false));
        let ready = inputs.fill(ctx, experts, job, grouped);
        let input = |weight: &PackedMatrix| ready.inputs.rows(ctx, weight.dtype(), ready.x);
        let reads_down = |thread| {
            let (index, channel) = last_plan.first_block(ctx, thread)?;
            Some(down.channels(groups[index].group).bytes_from(channel))
        };
        let dispatch = GroupDispatch {
            rows: grouped,
            plan: first_plan,
            shares_row: ready.shares_row,
            is_spread: false,
            first_read: &reads_down,
        };
        let matmul =
            |expert| first.matmul(expert, input(first.weight), then.epilogue(expert, input));
        let (all, k, format) = (grouped.order().len(), first.rows, down.weight.dtype());
        let MiddleBuffers { values, inputs: quantised } = middle;
        match output {
            Some(scheme) => dispatch.run_quantized(ctx, matmul, quantised.room(scheme, all, k)),
            None => {
                values.resize(all * k, 0.0);
                dispatch.run(ctx, matmul, values);
                let source = InputSource { x: values, k, norm: None };
                quantised.fill(ctx, [format].into_iter(), &source);
            }
        }
        let x = quantised.rows(ctx, format, values);
        let then_reads = |thread| (job.first_read)(thread);
        let dispatch = GroupDispatch {
            rows: grouped,
            plan: last_plan,
            shares_row: false,
            is_spread: true,
            first_read: &then_reads,
        };
        dispatch.run(ctx, |expert| down.matmul(expert, x, Epilogue::Store), out);
    }

    /// How the rows of the latest job were divided between so many experts. `each` gets those that have rows.
    pub(super) fn load(&self, experts: usize, each: Option<&mut Vec<RowsOfExpert>>) -> ExpertLoad {
        let groups = self.grouped.groups();
        if let Some(each) = each {
            each.reserve(experts);
            each.extend(groups.iter().map(|RowGroup { group, rows }| RowsOfExpert {
                expert: *group as u32,
                rows: rows.len() as u32,
            }));
        }
        ExpertLoad {
            experts,
            touched: groups.len(),
            rows: self.grouped.order().len(),
            most: groups.iter().map(|group| group.rows.len()).max().unwrap_or(0),
        }
    }

    /// Groups rows and slots by expert, as far as they have experts of the job.
    fn group(&mut self, experts: &Experts<'_>, job: &ExpertsJob<'_, '_>) {
        let Experts { count, used, .. } = *experts;
        self.expert_of.clear();
        for route in job.route.chunks_exact(2 * used) {
            // A number that is none is 0.
            let number = |number: &f32| match (*number as usize).min(count - 1) {
                expert if job.own.contains(&expert) => expert as u32,
                _ => GroupedRows::NO_GROUP,
            };
            self.expert_of.extend(route[..used].iter().map(number));
        }
        self.grouped.sort(count, &self.expert_of);
    }
}

/// What each expert's product with its matrix reads.
fn reads<'a>(matrices: ExpertMatrices<'a>, is_gated: bool) -> impl Fn(usize) -> BlockingInput<'a> {
    move |expert| BlockingInput { weight: matrices.channels(expert), is_gated }
}

/// The scheme in which what is made of the first products is quantised on the fly, if it is: tasks must be whole tiles, and one row
/// has too few of them.
fn output_scheme(ctx: &Cpu, experts: &Experts<'_>, rows: usize) -> Option<QuantScheme> {
    let scheme = ctx.block_scheme(experts.down.weight.dtype())?;
    let fits = |matrix: &ExpertMatrices<'_>| {
        let starts = [matrix.stride, matrix.first];
        starts.iter().all(|row| row.is_multiple_of(TILE))
            && matrix.rows.is_multiple_of(scheme.columns())
    };
    let mut matrices = experts.gate.iter().chain([&experts.up]);
    (rows > 1 && matrices.all(fits)).then_some(scheme)
}
