//! Rows in the order of their experts, as the weights of these need them.

use super::{Experts, ExpertsJob};
use crate::context::Cpu;
use crate::gemm::{GatheredRows, QuantizedInputs};
use crate::pool::GroupedRows;
use crate::quantize::InputSource;

/// Rows as weights need them; reuses its memory.
#[derive(Debug, Default)]
pub(super) struct InputBuffers {
    rows: QuantizedInputs,
    /// The rows of each expert.
    grouped: QuantizedInputs,
    /// These rows times their weights, where experts read that.
    weighted: Vec<f32>,
}

/// Rows as weights need them.
pub(super) struct Ready<'a> {
    pub(super) inputs: &'a QuantizedInputs,
    /// The rows in f32, unless `inputs` has these.
    pub(super) x: &'a [f32],
    /// Whether there is one row, which all experts read.
    pub(super) shares_row: bool,
}

impl InputBuffers {
    /// Brings the rows into the order of the experts. Each row is quantised once.
    pub(super) fn fill<'a>(
        &'a mut self,
        ctx: &Cpu,
        experts: &Experts<'_>,
        job: &ExpertsJob<'a, '_>,
        grouped_rows: &GroupedRows,
    ) -> Ready<'a> {
        let InputBuffers { rows, grouped, weighted } = self;
        let (used, k, x) = (experts.used, experts.up.weight.cols(), job.x);
        let (order, matrices) = (grouped_rows.order(), experts.gate.iter().chain([&experts.up]));
        let formats = matrices.map(|matrix| matrix.weight.dtype());
        let row_of = |place: usize| order[place] as usize / used;
        if experts.weighs_input {
            let weight_of = |place: usize| {
                let slot = order[place] as usize % used;
                job.route[row_of(place) * 2 * used + used + slot]
            };
            weighted.resize(order.len() * k, 0.0);
            let per_task = ctx.rows_per_task(order.len(), k);
            ctx.pool().chunks_mut(weighted, per_task * k, |i, to| {
                for (place, to) in (i * per_task..).zip(to.chunks_exact_mut(k)) {
                    let x = &x[row_of(place) * k..][..k];
                    (ctx.kernels().scale_into)(x, weight_of(place), to);
                }
            });
            grouped.fill(ctx, formats, &InputSource { x: weighted, k, norm: None });
            return Ready { inputs: grouped, x: weighted, shares_row: false };
        }
        rows.fill(ctx, formats.clone(), &InputSource { x, k, norm: None });
        if job.rows(experts) == 1 {
            return Ready { inputs: rows, x, shares_row: true };
        }
        let gathered = GatheredRows { x, k, count: order.len(), from: row_of };
        grouped.gather(ctx, rows, formats, &gathered);
        Ready { inputs: grouped, x, shares_row: false }
    }
}
