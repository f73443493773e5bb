//! Causal convolutions over a few rows.

use crate::context::Cpu;
use lapwing_model::device::BatchSpan;
use lapwing_model::kv::StateLayer;
use lapwing_model::op::Activation;
use std::cell::RefCell;

/// Rows of some sequences, and the weights of their columns.
#[derive(Clone, Copy, Debug)]
pub struct ShortConv<'a> {
    /// `[rows][width]`.
    pub x: &'a [f32],
    /// Values of a row.
    pub width: usize,
    /// Weights `[taps][width]`: those of the oldest row first, those of a row itself last.
    pub taps: &'a [f32],
    /// What is added to the sums, by column.
    pub bias: Option<&'a [f32]>,
    /// Whether the result is x·sigmoid(x) of the sum x.
    pub is_silu: bool,
}

impl<'a> ShortConv<'a> {
    fn row(&self, row: usize) -> &'a [f32] {
        &self.x[row * self.width..][..self.width]
    }
}

thread_local! {
    static SUMS: RefCell<Vec<f32>> = RefCell::default();
}

/// Causal convolution of each column. What a row needs of rows before its span is the state: the last rows, as many as there are
/// taps but one. Products are added in the order of the rows, those before the sequence left out, so that a value depends on its row
/// and those before it only, and not on spans.
///
/// # Panics
/// When `out` has another length than the rows, these are not those of the spans, or the state is not of that many rows.
pub fn short_conv(
    ctx: &Cpu,
    conv: &ShortConv<'_>,
    spans: &[BatchSpan],
    state: &StateLayer<'_>,
    out: &mut [f32],
) {
    let ShortConv { x, width, taps, bias, is_silu } = *conv;
    assert!(width > 0 && x.len() == out.len(), "the rows differ in length from the output");
    let (rows, earlier_max) = (x.len() / width, (taps.len() / width).saturating_sub(1));
    let kernels = ctx.kernels();
    let rows_per_task = ctx.rows_per_task(rows, width);
    ctx.pool().chunks_mut(out, rows_per_task * width, |task, out| {
        let mut sums = SUMS.take();
        sums.resize(if is_silu { width } else { 0 }, 0.0);
        for (at, out) in out.chunks_exact_mut(width).enumerate() {
            let row = task * rows_per_task + at;
            let span = &spans[spans.partition_point(|span| span.rows.end <= row)];
            let in_span = row - span.rows.start;
            let earlier = earlier_max.min(span.start + in_span);
            let row_before = |back: usize| match back.checked_sub(in_span + 1) {
                None => conv.row(row - back),
                Some(before_span) => {
                    let kept = state.before(span).unwrap_or_default();
                    &kept[kept.len() - (before_span + 1) * width..][..width]
                }
            };
            let to = if is_silu { &mut sums[..] } else { &mut *out };
            let taps = &taps[(earlier_max - earlier) * width..];
            (kernels.multiply)(row_before(earlier), &taps[..width], to);
            for (tap, back) in taps.chunks_exact(width).skip(1).zip((0..earlier).rev()) {
                (kernels.add_product)(row_before(back), tap, to);
            }
            if let Some(bias) = bias {
                (kernels.axpby)(to, bias, 1.0, 1.0);
            }
            if is_silu {
                (kernels.gated)(Activation::Sigmoid.into(), &sums, &sums, out);
            }
        }
        SUMS.set(sums);
    });
}
